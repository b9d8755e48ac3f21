"""Routes that are chosen while packets are on their way: one published algorithm a file."""
