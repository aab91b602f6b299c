// Datasets
