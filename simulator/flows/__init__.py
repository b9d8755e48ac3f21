"""The compiled engines of whole messages: max-min fair flows, and no contention."""
