"""Which mapping holds when nobody knows the model: regret over models drawn from ranges."""
