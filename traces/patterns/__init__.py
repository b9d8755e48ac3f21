"""Traffic by formula: stencils, textbook patterns, sparse matrix-vector products."""
