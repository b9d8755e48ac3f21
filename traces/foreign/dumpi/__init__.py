"""DUMPI, as sst-dumpi records it: one binary file a rank, and the meta file that names them."""
