"""What is known about packets and documents together: nodes, relations, questions, scope, coverage."""
