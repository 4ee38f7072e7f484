"""What a machine is and does: read from the system, never guessed."""
