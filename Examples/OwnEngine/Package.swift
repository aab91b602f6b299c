// swift-tools-version: 6.0
import PackageDescription

let package = Package(
  name: "OwnEngine",
  dependencies: [.package(name: "Touchstone", path: "../..")],
  targets: [
    .target(
      name: "CountingEngine",
      dependencies: [
        .product(name: "Touchstone", package: "Touchstone"),
        .product(name: "TouchstoneStorage", package: "Touchstone"),
      ]),
    .executableTarget(
      name: "OwnEngine",
      dependencies: [
        "CountingEngine", .product(name: "Touchstone", package: "Touchstone"),
        .product(name: "TouchstoneBench", package: "Touchstone"),
        .product(name: "TouchstoneStorage", package: "Touchstone"),
      ]),
  ])
