"""What a replay executes, and how traces and traffic become it."""
