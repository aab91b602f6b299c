// swift-tools-version: 6.0
import PackageDescription

let package = Package(
  name: "EncryptedImport",
  dependencies: [.package(name: "Touchstone", path: "../..")],
  targets: [
    .executableTarget(
      name: "EncryptedImport", dependencies: [.product(name: "Touchstone", package: "Touchstone")])
  ])
