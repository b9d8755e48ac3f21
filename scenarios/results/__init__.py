"""A folder of results: tables, claims, queries."""
