"""Which rank should sit on which node, and what does that buy."""
