// Fleece
