// Touchstone
