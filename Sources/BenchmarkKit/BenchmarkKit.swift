// BenchmarkKit
