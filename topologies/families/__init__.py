"""Networks by formula or from a graph: grids, hierarchies, switched and routed networks."""
