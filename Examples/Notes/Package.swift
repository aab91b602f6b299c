// swift-tools-version: 6.0
import PackageDescription

let package = Package(
  name: "Notes",
  products: [.executable(name: "notes", targets: ["Notes"])],
  dependencies: [.package(name: "Touchstone", path: "../..")],
  targets: [
    .executableTarget(name: "Notes", dependencies: [.product(name: "Touchstone", package: "Touchstone")])
  ])
