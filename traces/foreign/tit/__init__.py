"""SimGrid's time-independent traces, as its replay reads them."""
