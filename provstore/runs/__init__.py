"""Making runs: recipes, the ledger of attempts, suites of prompts, services, recording."""
