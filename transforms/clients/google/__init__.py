"""What Google's services have in common: channels, addresses, errors."""
