"""OTF2 archives, read and written by compiled callbacks of libotf2."""
