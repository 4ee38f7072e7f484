"""Reports as text for people, as exit codes, and as published schemas; pure, nothing here prints."""
