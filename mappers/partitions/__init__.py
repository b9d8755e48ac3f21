"""Mappers that partition the traffic along a hierarchy, by KaHIP or as TreeMatch does."""
