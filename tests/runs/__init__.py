"""Making runs: the ledger, the suite client."""
