// swift-tools-version: 6.0
import Foundation
import PackageDescription

// A variable that is set but empty is unset.
func variable(_ name: String) -> String? {
  ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
}

// The fuzz targets link libFuzzer's main, so they exist only when asked for: `make fuzz`.
let fuzzing = variable("TOUCHSTONE_FUZZ") != nil

// A build for the tests of one part, which leaves out the rest:
// TOUCHSTONE_TESTS=QueryTests,FleeceTests swift build ... --product TouchstonePackageTests
let testTargets = variable("TOUCHSTONE_TESTS")?.split(separator: ",").map(String.init)

// test-child asks random queries, but not in a build for the tests of other parts.
let asksRandomQueries = testTargets?.contains("QueryDifferentialTests") ?? true
let randomQueries: [Target.Dependency] = asksRandomQueries ? ["QueryDifferential"] : []

// Views over lent bytes (docs/architecture.md). Packages that use such a target need no flag.
let lifetimes: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]

let package = Package(
  name: "Touchstone",
  products: [
    .library(name: "Touchstone", targets: ["Touchstone"]),
    .executable(name: "touchstone", targets: ["touchstone"]),
    // Runs the functions of design documents (docs/scripts.md). A host starts it as a child process.
    .executable(name: "touchstone-scripts", targets: ["touchstone-scripts"]),
    // Preloaded by `touchstone bench --allocations`; nothing links it.
    .library(name: "touchstone-allocations", type: .dynamic, targets: ["CAllocationCounter"]),
    // Sync (docs/sync.md).
    .library(name: "TouchstoneSync", targets: ["TouchstoneSync"]),
    .library(name: "TouchstoneServer", targets: ["TouchstoneServer"]),
    // For engines from outside (docs/engines.md): the protocol with its conformance suite, and the bench.
    .library(name: "TouchstoneStorage", targets: ["Storage", "StorageConformance"]),
    .library(name: "TouchstoneBench", targets: ["Suites", "BenchmarkKit"]),
  ],
  targets: [
    // C libraries: module maps and thin shims, nothing else. SQLite and SQLCipher export the same
    // symbols and are opened at run time: nothing may link either (docs/storage-sqlite.md).
    .target(name: "CSQLite", path: "Sources/CSQLite", linkerSettings: [.linkedLibrary("dl")]),
    .systemLibrary(
      name: "CLMDB", path: "Sources/CLMDB", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"])]),
    .systemLibrary(
      name: "CCrypto", path: "Sources/CCrypto", pkgConfig: "libcrypto",
      providers: [.apt(["libssl-dev"])]),
    // The one exception: what has to be said to OpenSSL before its first use.
    .target(name: "COpenSSLExit", dependencies: ["CCrypto"], path: "Sources/COpenSSLExit"),
    .systemLibrary(
      name: "CSSL", path: "Sources/CSSL", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
      name: "CZlib", path: "Sources/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(
      name: "CISAL", path: "Sources/CISAL", pkgConfig: "libisal", providers: [.apt(["libisal-dev"])]),
    .systemLibrary(
      name: "CZip", path: "Sources/CZip", pkgConfig: "libzip", providers: [.apt(["libzip-dev"])]),
    .systemLibrary(
      name: "CSnappy", path: "Sources/CSnappy", pkgConfig: "snappy",
      providers: [.apt(["libsnappy-dev"])]),
    .target(
      name: "CICU", path: "Sources/CICU",
      linkerSettings: [.linkedLibrary("icui18n"), .linkedLibrary("icuuc")]),
    // libstemmer has no .pc file.
    .systemLibrary(
      name: "CStemmer", path: "Sources/CStemmer", providers: [.apt(["libstemmer-dev"])]),
    // Nor has libwslay.
    .systemLibrary(name: "CWslay", path: "Sources/CWslay", providers: [.apt(["libwslay-dev"])]),
    .systemLibrary(
      name: "CCurl", path: "Sources/CCurl", pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"])]),
    // Opened at run time too: many machines have no Avahi.
    .target(name: "CAvahi", path: "Sources/CAvahi", linkerSettings: [.linkedLibrary("dl")]),
    .systemLibrary(name: "CFileSystem", path: "Sources/CFileSystem"),
    .systemLibrary(
      name: "CMicrohttpd", path: "Sources/CMicrohttpd", pkgConfig: "libmicrohttpd",
      providers: [.apt(["libmicrohttpd-dev"])]),
    .systemLibrary(name: "CSockets", path: "Sources/CSockets"),
    .systemLibrary(name: "CTimers", path: "Sources/CTimers"),
    .target(
      name: "CSimdjson", path: "Sources/CSimdjson",
      linkerSettings: [.linkedLibrary("simdjson")]),

    // The library, bottom to top (docs/architecture.md).
    .target(
      name: "Bytes",
      swiftSettings: lifetimes + (fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : [])),
    .target(
      name: "Storage", dependencies: ["Bytes", "CFileSystem", "CCrypto", "COpenSSLExit"],
      swiftSettings: lifetimes),
    .target(name: "Logs", dependencies: ["Bytes", "Storage"]),
    .target(
      name: "BLIP", dependencies: ["Bytes", "Storage", "Logs", "CZlib", "CISAL"],
      swiftSettings: fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : []),
    .target(
      name: "WebSocket", dependencies: ["Bytes", "Storage", "Logs", "BLIP", "CWslay", "CSockets", "CCrypto"],
      swiftSettings: fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : []),
    .target(
      name: "Network",
      dependencies: [
        "Bytes", "Storage", "Logs", "HTTP", "BLIP", "WebSocket", "CCurl", "CSockets", "CCrypto",
      ],
      swiftSettings: fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : []),
    .target(name: "SQLiteLibrary", dependencies: ["Bytes", "CSQLite"]),
    .target(name: "StorageSQLite", dependencies: ["Bytes", "Storage", "SQLiteLibrary", "CCrypto"]),
    .target(name: "StorageLMDB", dependencies: ["Bytes", "Storage", "CLMDB"]),
    .target(name: "StorageMemory", dependencies: ["Bytes", "Storage"]),
    .target(
      name: "Fleece", dependencies: ["Bytes", "CSimdjson"],
      swiftSettings: lifetimes + (fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : [])),
    .target(name: "Encryption", dependencies: ["Bytes", "Storage", "CCrypto"]),
    .target(
      name: "StorageEncrypted",
      dependencies: ["Bytes", "Storage", "StorageLMDB", "Encryption", "CLMDB", "CCrypto"]),
    .target(name: "Blobs", dependencies: ["Storage", "Encryption", "CCrypto"]),
    .target(
      name: "Documents",
      dependencies: ["Bytes", "Storage", "Logs", "Fleece", "Encryption", "Blobs", "CCrypto", "CISAL"],
      swiftSettings: lifetimes),
    .target(
      name: "CBLite2",
      dependencies: [
        "Bytes", "Documents", "Fleece", "Blobs", "Storage", "SQLiteLibrary", "CSQLite", "CCrypto",
      ]),
    .target(
      name: "FullText", dependencies: ["Bytes", "Storage", "CICU", "CStemmer"],
      swiftSettings: fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : []),
    .target(
      name: "Query", dependencies: ["Bytes", "Storage", "Logs", "Fleece", "Documents", "FullText", "CICU"],
      swiftSettings: lifetimes + (fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : [])),
    // Starts other programs, and waits for them.
    .target(name: "ChildProcesses", dependencies: ["Storage"]),
    .target(
      name: "Scripts", dependencies: ["Bytes", "Storage", "Logs", "ChildProcesses", "CFileSystem"]),
    // Nothing else links SpiderMonkey. Its .pc file has a flag that the package manager refuses.
    .executableTarget(
      name: "touchstone-scripts", path: "Sources/ScriptsChild",
      cxxSettings: [.unsafeFlags(["-isystem", "/usr/include/mozjs-102"])],
      linkerSettings: [.linkedLibrary("mozjs-102"), .linkedLibrary("pthread")]),
    .target(
      name: "Views",
      dependencies: [
        "Bytes", "Storage", "Logs", "Fleece", "Documents", "FullText", "Scripts", "CICU", "CCrypto",
      ],
      swiftSettings: lifetimes),
    // ForestDB files of Couchbase Lite 1.x, read without their library.
    .target(
      name: "ForestDBFile",
      dependencies: ["Bytes", "Storage", "Encryption", "CCrypto", "CISAL", "CSnappy"],
      swiftSettings: fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"]), .define("FUZZING")] : []),
    .target(
      name: "Upgrade",
      dependencies: [
        "Bytes", "SQLiteLibrary", "CSQLite", "ForestDBFile", "Documents", "Blobs", "Fleece", "Encryption",
        "Storage", "CCrypto", "CZlib",
      ]),
    .target(
      name: "Touchstone",
      dependencies: [
        "Bytes", "Documents", "Fleece", "FullText", "Query", "Views", "Scripts", "CBLite2", "Upgrade",
        "Encryption", "Blobs", "Storage", "Logs",
        "StorageSQLite", "StorageLMDB", "StorageEncrypted", "StorageMemory", "CFileSystem", "CZip",
      ]),

    // Sync: the algorithm, and databases of one process. It stands above the facade.
    .target(
      name: "Replication",
      dependencies: [
        "Bytes", "Storage", "Logs", "Fleece", "Blobs", "Documents", "Touchstone", "CCrypto",
      ]),

    // What replication over any network has in common.
    .target(name: "ReplicationNetwork", dependencies: ["BLIP", "Replication", "Network"]),
    .target(
      name: "ReplicationBLIP",
      dependencies: [
        "Bytes", "Storage", "Logs", "Fleece", "Blobs", "Documents", "Touchstone", "BLIP", "Replication",
        "ReplicationNetwork", "WebSocket", "Network",
      ]),
    .target(
      name: "ReplicationHTTP",
      dependencies: [
        "Bytes", "Storage", "Logs", "Fleece", "Blobs", "Documents", "Touchstone", "BLIP", "HTTP",
        "Replication",
        "ReplicationNetwork", "Network", "CCrypto", "CZlib",
      ],
      swiftSettings: lifetimes),
    // Services in the local network: announced and found by Avahi, where that is.
    .target(name: "Discovery", dependencies: ["Bytes", "Storage", "Logs", "CAvahi"]),
    .target(
      name: "TouchstoneSync",
      dependencies: ["Replication", "ReplicationBLIP", "ReplicationHTTP", "Discovery"]),

    // HTTP messages as values: for the listener, and for the API, which knows no sockets.
    .target(
      name: "HTTP", dependencies: ["Bytes", "Storage"],
      swiftSettings: fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : []),
    // The listener: sockets, TLS, HTTP. It knows no documents.
    .target(
      name: "Server",
      dependencies: [
        "Bytes", "Storage", "Logs", "HTTP", "BLIP", "WebSocket", "CMicrohttpd", "CCrypto", "CSSL",
      ]),
    // Answers to the requests of clients of CouchDB. It knows no sockets.
    .target(
      name: "HTTPAPI",
      dependencies: [
        "Bytes", "Storage", "Logs", "HTTP", "Fleece", "Blobs", "Documents", "Query", "Views", "Scripts",
        "Touchstone", "Replication", "CCrypto", "CZlib",
      ],
      swiftSettings: lifetimes + (fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : [])),

    .target(
      name: "TouchstoneServer",
      dependencies: [
        "Bytes", "Storage", "Logs", "Touchstone", "BLIP", "WebSocket", "Replication", "ReplicationBLIP",
        "ReplicationHTTP", "HTTP", "HTTPAPI", "Server", "Discovery",
      ]),

    // The bench. It depends on the library, never the reverse.
    .target(name: "CAllocationCounter"),
    .target(name: "BenchmarkKit", dependencies: ["Bytes", "Storage", "ChildProcesses", "CTimers"]),
    .target(
      name: "Datasets",
      dependencies: [
        "Bytes", "Storage", "SQLiteLibrary", "CSQLite", "CZlib", "CCrypto", "CISAL", "CSnappy",
      ],
      path: "Datasets"),
    .target(
      name: "Limits", dependencies: ["CSQLite", "CLMDB", "CSimdjson", "CCrypto"],
      path: "Benchmarks/Limits"),
    .target(
      name: "Suites",
      dependencies: [
        "Bytes", "Touchstone", "Replication", "ReplicationBLIP", "TouchstoneSync", "HTTP", "Server",
        "TouchstoneServer", "Storage",
        "SQLiteLibrary", "StorageSQLite", "StorageLMDB", "ChildProcesses", "BenchmarkKit",
        "Datasets", "Limits", "CSQLite", "CLMDB", "CTimers",
      ], path: "Benchmarks/Suites"),
    .executableTarget(
      name: "touchstone",
      dependencies: [
        "Bytes", "Touchstone", "TouchstoneSync", "ReplicationHTTP", "TouchstoneServer", "Server", "HTTPAPI",
        "Documents", "Query", "Views", "Fleece",
        "Storage", "BenchmarkKit", "Datasets", "Suites",
      ],
      path: "Sources/CLI"),

    // Tests. StorageConformance is what an engine has to pass.
    .target(
      name: "StorageConformance", dependencies: ["Storage", "ChildProcesses"],
      path: "Tests/StorageConformance"),
    // TestSupport is what the tests of several parts share.
    .target(
      name: "TestSupport",
      dependencies: [
        "AtLoad", "StorageConformance", "ChildProcesses", "Storage", "Fleece", "Touchstone", "CBLite2",
        "Documents", "Upgrade",
      ],
      path: "Tests/TestSupport"),
    .target(name: "AtLoad", path: "Tests/AtLoad"),
    // CountedSync takes the place of the C library's syncs in a program that links it.
    .target(
      name: "CountedSync", path: "Tests/CountedSync", linkerSettings: [.linkedLibrary("dl")]),
    // HeldHandles does so with LMDB's opening of named databases.
    .target(
      name: "HeldHandles", dependencies: ["CLMDB"], path: "Tests/HeldHandles",
      linkerSettings: [.linkedLibrary("dl")]),
    // Simulation drives processes that use one database, and compares them with a model.
    .target(
      name: "Simulation",
      dependencies: ["TestSupport", "StorageConformance", "ChildProcesses", "Touchstone"],
      path: "Tests/Simulation"),
    .testTarget(name: "SimulationTests", dependencies: ["Simulation", "TestSupport", "test-child"]),
    // The program that tests start as a child process.
    .executableTarget(
      name: "test-child",
      dependencies: [
        "TestSupport", "StorageConformance", "Storage", "StorageSQLite", "StorageLMDB", "StorageEncrypted",
        "Touchstone", "TouchstoneSync", "TouchstoneServer", "CountedSync", "HeldHandles", "Logs",
        "ForestDBFile", "Datasets", "BenchmarkKit", "HTTP", "Server", "WebSocket", "Simulation",
      ] + randomQueries,
      path: "Tests/TestChild",
      swiftSettings: asksRandomQueries ? [.define("QUERY_DIFFERENTIAL")] : []),
    // Runs the tests in several processes (docs/testing.md).
    .executableTarget(
      name: "test-runner", dependencies: ["ChildProcesses", "Storage"], path: "Tests/TestRunner"),
    .testTarget(name: "BytesTests", dependencies: ["Bytes"], swiftSettings: lifetimes),
    .testTarget(
      name: "StorageTests",
      dependencies: [
        "TestSupport", "StorageConformance", "StorageSQLite", "StorageLMDB", "StorageEncrypted",
        "StorageMemory",
        "test-child",
      ]),
    .testTarget(name: "LogsTests", dependencies: ["TestSupport", "Logs", "Touchstone", "test-child"]),
    .testTarget(name: "StorageSQLiteTests", dependencies: ["TestSupport", "StorageSQLite"]),
    // LMDBTestSupport is what the tests of both engines over LMDB share.
    .target(
      name: "LMDBTestSupport", dependencies: ["TestSupport", "StorageConformance", "Storage", "StorageLMDB"],
      path: "Tests/LMDBTestSupport"),
    .testTarget(
      name: "StorageLMDBTests",
      dependencies: [
        "TestSupport", "LMDBTestSupport", "StorageLMDB", "StorageEncrypted", "CLMDB", "test-child",
      ]),
    .testTarget(
      name: "StorageEncryptedTests",
      dependencies: [
        "TestSupport", "LMDBTestSupport", "StorageEncrypted", "StorageLMDB", "CLMDB", "test-child",
      ]),
    // FullTextReference answers match queries literally, for the tests of what is fast.
    .target(name: "FullTextReference", dependencies: ["FullText"], path: "Tests/FullTextReference"),
    .testTarget(
      name: "FullTextTests",
      dependencies: ["TestSupport", "FullText", "FullTextReference", "SQLiteLibrary", "CSQLite"]),
    .testTarget(name: "FleeceTests", dependencies: ["TestSupport", "Bytes", "Fleece", "test-child"]),
    .testTarget(name: "EncryptionTests", dependencies: ["TestSupport", "Encryption", "Storage"]),
    .testTarget(
      name: "BlobsTests",
      dependencies: [
        "TestSupport", "Blobs", "Storage", "Encryption", "Touchstone", "test-child",
      ]),
    .testTarget(
      name: "DocumentsTests",
      dependencies: ["TestSupport", "Bytes", "Touchstone", "StorageConformance", "test-child"],
      exclude: ["Databases"]),
    .testTarget(
      name: "ConversionTests",
      dependencies: [
        "TestSupport", "Touchstone", "Storage", "SQLiteLibrary", "StorageConformance", "Datasets",
        "test-child",
      ]),
    .testTarget(
      name: "CBLite2Tests",
      dependencies: [
        "TestSupport", "Touchstone", "CBLite2", "Fleece", "SQLiteLibrary", "CSQLite", "Datasets", "Storage",
        "test-child",
      ]),
    .testTarget(
      name: "UpgradeTests",
      dependencies: [
        "TestSupport", "Upgrade", "ForestDBFile", "Touchstone", "Datasets", "SQLiteLibrary", "CSQLite",
        "CZlib", "test-child",
      ]),
    .testTarget(
      name: "TouchstoneTests",
      dependencies: ["TestSupport", "Touchstone", "Suites", "Datasets", "test-child"],
      exclude: ["PublicTypes.txt"]),
    .testTarget(
      name: "QueryTests",
      dependencies: [
        "TestSupport", "Query", "Documents", "Fleece", "Storage", "Touchstone", "Datasets", "CICU",
        "FullTextReference",
        "test-child",
      ]),
    .testTarget(name: "BLIPTests", dependencies: ["StorageConformance", "Bytes", "Storage", "BLIP"]),
    .testTarget(
      name: "WebSocketTests",
      dependencies: ["StorageConformance", "Bytes", "Storage", "BLIP", "WebSocket", "CSockets"]),
    .testTarget(
      name: "NetworkTests",
      dependencies: [
        "TestSupport", "StorageConformance", "Bytes", "Storage", "BLIP", "HTTP", "Logs", "WebSocket",
        "Network",
      ]),
    .testTarget(name: "ChildProcessesTests", dependencies: ["ChildProcesses"]),
    .testTarget(
      name: "ScriptsTests", dependencies: ["Bytes", "ChildProcesses", "Scripts", "touchstone-scripts"]),
    .testTarget(
      name: "ViewsTests",
      dependencies: [
        "TestSupport", "Views", "Scripts", "Documents", "Fleece", "Storage", "StorageMemory", "Touchstone",
        "Datasets", "CICU", "test-child", "touchstone-scripts", "FullText", "FullTextReference",
      ]),
    // QueryDifferential asks random queries in all ways and compares the rows.
    .target(
      name: "QueryDifferential",
      dependencies: [
        "TestSupport", "Touchstone", "Query", "FullText", "FullTextReference", "Documents", "Fleece",
        "Storage", "StorageConformance",
      ], path: "Tests/QueryDifferential"),
    .testTarget(
      name: "QueryDifferentialTests", dependencies: ["QueryDifferential", "TestSupport", "Touchstone"]),
    // ReplicationTestSupport is what the tests of replication over either protocol share.
    .target(
      name: "ReplicationTestSupport", dependencies: ["TestSupport", "Replication", "Touchstone", "Storage"],
      path: "Tests/ReplicationTestSupport"),
    .testTarget(
      name: "ReplicationTests",
      dependencies: [
        "TestSupport", "ReplicationTestSupport", "StorageConformance", "BLIP", "Replication",
        "ReplicationNetwork", "ReplicationBLIP", "TouchstoneServer",
        "TouchstoneSync", "ReplicationHTTP", "WebSocket",
        "Network",
        "Touchstone",
        "Documents",
        "Fleece", "Blobs", "Storage", "test-child",
      ]),
    // RawHTTP is a client that writes and reads bytes, without databases.
    .target(name: "RawHTTP", path: "Tests/RawHTTP"),
    .testTarget(
      name: "ReplicationHTTPTests",
      dependencies: [
        "TestSupport", "ReplicationTestSupport", "StorageConformance", "BLIP", "HTTP", "Network",
        "Replication", "ReplicationBLIP",
        "ReplicationHTTP", "TouchstoneServer", "TouchstoneSync", "Touchstone", "Documents", "Fleece", "Blobs",
        "Storage", "Server", "CZlib", "test-child",
      ]),
    .testTarget(
      name: "ServerTests",
      dependencies: [
        "TestSupport", "RawHTTP", "Bytes", "Storage", "Logs", "HTTP", "BLIP", "WebSocket", "Server",
        "CCrypto", "CSSL", "test-child",
      ]),
    .testTarget(
      name: "DiscoveryTests",
      dependencies: [
        "TestSupport", "Storage", "Touchstone", "Replication", "ReplicationBLIP", "ReplicationHTTP",
        "Discovery", "TouchstoneServer", "TouchstoneSync",
      ]),
    .testTarget(
      name: "HTTPAPITests",
      dependencies: [
        "TestSupport", "StorageConformance", "Bytes", "Storage", "HTTP", "HTTPAPI", "Fleece", "Blobs",
        "Documents", "Views", "Touchstone", "Replication", "Logs", "Datasets", "CZlib", "touchstone-scripts",
        "test-child", "RawHTTP", "TouchstoneServer", "TouchstoneSync", "ReplicationTestSupport",
      ]),
    .testTarget(name: "BenchmarkKitTests", dependencies: ["BenchmarkKit"]),
    .testTarget(name: "DatasetsTests", dependencies: ["ChildProcesses", "Datasets"]),
    .testTarget(
      name: "SuitesTests",
      dependencies: [
        "TestSupport", "Suites", "Limits", "Touchstone", "StorageLMDB", "StorageConformance", "touchstone",
      ]),
    .testTarget(
      name: "CLITests", dependencies: ["TestSupport", "touchstone", "Touchstone", "Datasets", "Storage"]),
  ]
    + (fuzzing
      ? [
        .target(name: "FuzzDriver", path: "Fuzz/Driver"),
        .executableTarget(
          name: "fuzz-fleece", dependencies: ["FuzzDriver", "Fleece"], path: "Fuzz/Fleece",
          swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
          linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
        .executableTarget(
          name: "fuzz-query", dependencies: ["FuzzDriver", "Query"], path: "Fuzz/Query",
          swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
          linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
        .executableTarget(
          name: "fuzz-match", dependencies: ["FuzzDriver", "FullText"], path: "Fuzz/Match",
          swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
          linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
        .executableTarget(
          name: "fuzz-blip", dependencies: ["FuzzDriver", "BLIP", "CZlib"], path: "Fuzz/BLIP",
          swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
          linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
        .executableTarget(
          name: "fuzz-websocket", dependencies: ["FuzzDriver", "WebSocket", "Network"],
          path: "Fuzz/WebSocket",
          swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
          linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
        .executableTarget(
          name: "fuzz-http", dependencies: ["FuzzDriver", "HTTP", "HTTPAPI", "Storage", "Touchstone"],
          path: "Fuzz/HTTP",
          swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
          linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
        .executableTarget(
          name: "fuzz-forestdb", dependencies: ["FuzzDriver", "ForestDBFile"], path: "Fuzz/ForestDB",
          swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
          linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
        .executableTarget(
          name: "fuzz-json", dependencies: ["FuzzDriver", "Fleece"], path: "Fuzz/JSON",
          swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
          linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
      ] : []),
  cxxLanguageStandard: .cxx17
)

// Tests are many and run once: optimizing them takes longer than it saves. What they test and compare with is optimized.
for target in package.targets where target.type == .test {
  let unoptimized = SwiftSetting.unsafeFlags(["-Onone"], .when(configuration: .release))
  target.swiftSettings = (target.swiftSettings ?? []) + [unoptimized]
}

if let testTargets {
  package.targets.removeAll { $0.type == .test && !testTargets.contains($0.name) }
}
