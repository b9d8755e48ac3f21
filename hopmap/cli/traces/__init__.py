"""Commands that read traces and traffic, and make them."""
