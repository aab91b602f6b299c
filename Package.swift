// swift-tools-version: 6.0
import Foundation
import PackageDescription

// A variable that is set but empty is unset.
func variable(_ name: String) -> String? {
  ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
}

// The fuzz targets link libFuzzer's main, so they exist only when asked for: `make fuzz`.
let fuzzing = variable("TOUCHSTONE_FUZZ") != nil

// The shared library for C is linked from an archive, which exists only when asked for: `make library`.
let makesLibrary = variable("TOUCHSTONE_LIBRARY") != nil

// A package of only the tests of some parts and what these need: TOUCHSTONE_TESTS=QueryTests,FleeceTests swift build …
let testTargets = variable("TOUCHSTONE_TESTS")?.split(separator: ",").map(String.init)

// Views over lent bytes (docs/architecture.md). Packages that use such a target need no flag.
let lifetimes: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]

// The engines whose libraries not every machine has. An app or the command has one of them only where its library is
// installed. The Makefile says in TOUCHSTONE_ENGINES which are (its names, separated by spaces, or "none"): the package
// manager keeps what it has read of this file, and reads it again only when a variable changes.
let namedEngines = variable("TOUCHSTONE_ENGINES")?.split(separator: " ").map(String.init)
/// Whether the library of this name is installed.
func isInstalled(_ package: String) -> Bool {
  let folders =
    (variable("PKG_CONFIG_PATH")?.split(separator: ":").map(String.init) ?? [])
    + ["x86_64-linux-gnu/", "aarch64-linux-gnu/", ""].map { "/usr/lib/\($0)pkgconfig" }
    + ["/usr/local/lib/pkgconfig", "/usr/lib64/pkgconfig", "/usr/share/pkgconfig"]
  return folders.contains { FileManager.default.fileExists(atPath: "\($0)/\(package).pc") }
}
let hasRocksDB = namedEngines?.contains("rocksdb") ?? isInstalled("rocksdb")
let hasWiredTiger = namedEngines?.contains("wiredtiger") ?? isInstalled("wiredtiger")
let hasPostgres = namedEngines?.contains("postgres") ?? isInstalled("libpq")
/// The modules of those engines.
let optionalModules: [Target.Dependency] =
  (hasRocksDB ? ["StorageRocksDB"] : []) + (hasWiredTiger ? ["StorageWiredTiger"] : [])
/// And those of an engine on a server. The bindings don't have it.
let serverModules: [Target.Dependency] = hasPostgres ? ["StoragePostgres"] : []
/// What code that names engines is compiled with.
let optionalSettings: [SwiftSetting] =
  (hasRocksDB ? [.define("ROCKSDB")] : []) + (hasWiredTiger ? [.define("WIREDTIGER")] : [])
let serverSettings: [SwiftSetting] = hasPostgres ? [.define("POSTGRES")] : []

// Checks that what belongs to one thread is used on it alone (docs/testing.md). An app's build has no such checks.
let checksThreads = variable("TOUCHSTONE_CHECKS") != nil

/// A floor of the architecture (docs/architecture.md). A module imports modules of its own floor or of floors below it;
/// `make lint` checks that.
///
/// `Sources/FLOOR/MODULE` has the module, and `Tests/FLOOR/MODULETests` its tests.
struct Floor {
  let name: String

  /// A module. `lends` gives it views over lent bytes. What a fuzz target tries is `fuzzed`.
  func module(
    _ name: String, _ imports: [Target.Dependency] = [], lends: Bool = false, fuzzed: Bool = false,
    defines: [String] = []
  ) -> Target {
    var settings = (lends ? lifetimes : []) + defines.map { .define($0) }
    if fuzzed && fuzzing { settings += [.unsafeFlags(["-sanitize=fuzzer,address"]), .define("FUZZING")] }
    return .target(
      name: name, dependencies: imports, path: "Sources/\(self.name)/\(name)", swiftSettings: settings)
  }

  /// The tests of a part.
  func tests(
    _ part: String, _ imports: [Target.Dependency], exclude: [String] = [], lends: Bool = false,
    namesEngines: Bool = false
  ) -> Target {
    .testTarget(
      name: part + "Tests", dependencies: imports + (namesEngines ? optionalModules + serverModules : []),
      path: "Tests/\(name)/\(part)Tests", exclude: exclude,
      swiftSettings: (lends ? lifetimes : []) + (namesEngines ? optionalSettings + serverSettings : []))
  }

  /// A module that only tests use.
  func testing(_ name: String, _ imports: [Target.Dependency], namesEngines: Bool = false) -> Target {
    .target(
      name: name, dependencies: imports + (namesEngines ? optionalModules + serverModules : []),
      path: "Tests/\(self.name)/\(name)", swiftSettings: namesEngines ? optionalSettings + serverSettings : []
    )
  }

  /// A program that tests start as a child process (docs/testing.md), or that runs them.
  func program(
    _ name: String, _ folder: String, _ imports: [Target.Dependency], namesEngines: Bool = false
  ) -> Target {
    .executableTarget(
      name: name, dependencies: imports + (namesEngines ? optionalModules + serverModules : []),
      path: "Tests/\(self.name)/\(folder)",
      swiftSettings: namesEngines ? optionalSettings + serverSettings : [])
  }
}

let ground = Floor(name: "Ground")
let storage = Floor(name: "Storage")
let database = Floor(name: "Database")
let legacy = Floor(name: "Legacy")
let facade = Floor(name: "Facade")
let wire = Floor(name: "Wire")
let sync = Floor(name: "Sync")
let couchDB = Floor(name: "CouchDB")
let bindings = Floor(name: "Bindings")
let bench = Floor(name: "Bench")
let tool = Floor(name: "Tool")
let whole = Floor(name: "Whole")
/// What tests of all floors use.
let support = Floor(name: "Support")

/// A module map of a C library of the system, found by pkg-config, or beside the compiler's own headers.
func library(_ name: String, pkgConfig: String? = nil, debian: String? = nil) -> Target {
  .systemLibrary(
    name: name, path: "Sources/CLibraries/\(name)", pkgConfig: pkgConfig,
    providers: debian.map { [.apt([$0])] })
}

/// A thin layer in C over a library, linked by its name.
func shim(_ name: String, _ imports: [Target.Dependency] = [], links: [String] = []) -> Target {
  .target(
    name: name, dependencies: imports, path: "Sources/CLibraries/\(name)",
    linkerSettings: links.map { .linkedLibrary($0) })
}

/// C functions that take the place of a library's in a program of tests.
func replacement(_ name: String, _ imports: [Target.Dependency] = []) -> Target {
  .target(
    name: name, dependencies: imports, path: "Tests/Support/\(name)", linkerSettings: [.linkedLibrary("dl")])
}

// C libraries: module maps and thin shims, nothing else. SQLite and SQLCipher export the same symbols and are opened at
// run time: nothing may link either (docs/storage-sqlite.md). Avahi is opened at run time too, since many machines have
// none. libstemmer and libwslay have no .pc file.
let libraries =
  [
    library("CCrypto", pkgConfig: "libcrypto", debian: "libssl-dev"),
    library("CCurl", pkgConfig: "libcurl", debian: "libcurl4-openssl-dev"),
    library("CEdit", pkgConfig: "libedit", debian: "libedit-dev"),
    library("CFileSystem"),
    library("CISAL", pkgConfig: "libisal", debian: "libisal-dev"),
    library("CLMDB", pkgConfig: "lmdb", debian: "liblmdb-dev"),
    library("CMicrohttpd", pkgConfig: "libmicrohttpd", debian: "libmicrohttpd-dev"),
    library("CSSL", pkgConfig: "libssl", debian: "libssl-dev"),
    library("CSnappy", pkgConfig: "snappy", debian: "libsnappy-dev"),
    library("CSockets"),
    library("CStemmer", debian: "libstemmer-dev"),
    library("CTimers"),
    library("CWslay", debian: "libwslay-dev"),
    library("CZip", pkgConfig: "libzip", debian: "libzip-dev"),
    library("CZlib", pkgConfig: "zlib", debian: "zlib1g-dev"),
    shim("CAllocationCounter"),
    shim("CAvahi", links: ["dl"]),
    // The commit that is built. A change of the variable compiles this target again, and nothing else.
    .target(
      name: "CBuild", path: "Sources/CLibraries/CBuild",
      cSettings: variable("TOUCHSTONE_COMMIT").map { [.define("TOUCHSTONE_COMMIT", to: "\"\($0)\"")] } ?? []),
    shim("CICU", links: ["icui18n", "icuuc"]),
    // Lines typed on a terminal.
    shim("CLineEditor", ["CEdit"]),
    // What has to be said to OpenSSL before its first use.
    shim("COpenSSLExit", ["CCrypto"]),
    shim("CSQLite", links: ["dl"]),
    shim("CSimdjson", links: ["simdjson"]),
  ]
  + (hasRocksDB ? [library("CRocksDB", pkgConfig: "rocksdb", debian: "librocksdb-dev")] : [])
  + (hasWiredTiger ? [library("CWiredTiger", pkgConfig: "wiredtiger", debian: "libwiredtiger-dev")] : [])
  + (hasPostgres ? [library("CPostgres", pkgConfig: "libpq", debian: "libpq-dev")] : [])

// Engines whose libraries not every machine has.
let optionalEngineModules: [Target] =
  (hasRocksDB ? [storage.module("StorageRocksDB", ["Bytes", "Storage", "StorageFlat", "CRocksDB"])] : [])
  + (hasWiredTiger
    ? [storage.module("StorageWiredTiger", ["Bytes", "Storage", "StorageFlat", "CWiredTiger"])] : [])
  + (hasPostgres
    ? [storage.module("StoragePostgres", ["Bytes", "Storage", "StorageFlat", "StorageMemory", "CPostgres"])]
    : [])

let modules: [Target] = [
  // Ground
  ground.module("Bytes", lends: true, fuzzed: true),
  ground.module("System", ["CFileSystem", "CTimers"], defines: checksThreads ? ["THREAD_CHECKS"] : []),
  ground.module("Logs", ["Bytes", "System"]),
  // Starts other programs, and waits for them.
  ground.module("ChildProcesses", ["System"]),

  // Wire: knows no database
  wire.module("Transport", ["System"], fuzzed: true),
  wire.module("BLIP", ["Bytes", "System", "Logs", "Transport", "CZlib", "CISAL"], fuzzed: true),
  wire.module(
    "WebSocket", ["Bytes", "System", "Logs", "Transport", "CWslay", "CSockets", "CCrypto"], fuzzed: true),
  // HTTP messages as values: for the listener, and for the API, which knows no sockets.
  wire.module("HTTP", ["Bytes", "System"], fuzzed: true),
  wire.module(
    "Network",
    ["Bytes", "System", "Logs", "HTTP", "Transport", "WebSocket", "CCurl", "CSockets", "CCrypto"],
    fuzzed: true),
  // The listener: sockets, TLS, HTTP.
  wire.module(
    "Server", ["Bytes", "System", "Logs", "HTTP", "Transport", "WebSocket", "CMicrohttpd", "CCrypto", "CSSL"]),
  // Services in the local network: announced and found by Avahi, where that is.
  wire.module("Discovery", ["Bytes", "System", "Logs", "CAvahi"]),

  // Storage
  storage.module("Storage", ["Bytes", "System", "CCrypto", "COpenSSLExit"], lends: true),
  storage.module("SQLiteLibrary", ["Bytes", "CSQLite"]),
  storage.module("StorageSQLite", ["Bytes", "Storage", "SQLiteLibrary", "CCrypto"]),
  storage.module("StorageLMDB", ["Bytes", "Storage", "CLMDB"]),
  storage.module("StorageMemory", ["Bytes", "Storage"]),
  // An engine over a library that has one ordered map in a directory of its own.
  storage.module("StorageFlat", ["Bytes", "Storage", "CFileSystem"]),
  storage.module("Encryption", ["Bytes", "Storage", "CCrypto"]),
  storage.module("StorageEncrypted", ["Bytes", "Storage", "StorageLMDB", "Encryption", "CLMDB", "CCrypto"]),

  // Database
  database.module("Fleece", ["Bytes", "CSimdjson"], lends: true, fuzzed: true),
  database.module("Blobs", ["Storage", "Encryption", "CCrypto"]),
  database.module(
    "Documents", ["Bytes", "Storage", "Logs", "Fleece", "Encryption", "Blobs", "CCrypto", "CISAL"],
    lends: true),
  database.module("FullText", ["Bytes", "Storage", "CICU", "CStemmer"], fuzzed: true),
  database.module(
    "Query", ["Bytes", "System", "Storage", "Encryption", "Logs", "Fleece", "Documents", "FullText", "CICU"],
    lends: true,
    fuzzed: true),
  database.module("Scripts", ["Bytes", "System", "Logs", "ChildProcesses", "CFileSystem"]),
  // Nothing else links SpiderMonkey. Its .pc file has a flag that the package manager refuses.
  .executableTarget(
    name: "touchstone-scripts", path: "Sources/Database/ScriptsChild",
    cxxSettings: [.unsafeFlags(["-isystem", "/usr/include/mozjs-102"])],
    linkerSettings: [.linkedLibrary("mozjs-102"), .linkedLibrary("pthread")]),
  database.module(
    "Views",
    ["Bytes", "Storage", "Logs", "Fleece", "Documents", "FullText", "Scripts", "CICU", "CCrypto"], lends: true
  ),

  // Legacy: files of Couchbase Lite
  legacy.module(
    "CBLite2",
    ["Bytes", "Documents", "Fleece", "Blobs", "Storage", "SQLiteLibrary", "CSQLite", "CCrypto"]),
  // ForestDB files of Couchbase Lite 1.x, read without their library.
  legacy.module(
    "ForestDBFile", ["Bytes", "Storage", "Encryption", "CCrypto", "CISAL", "CSnappy"], fuzzed: true),
  legacy.module(
    "Upgrade",
    [
      "Bytes", "SQLiteLibrary", "CSQLite", "ForestDBFile", "Documents", "Blobs", "Fleece", "Encryption",
      "Storage", "CCrypto", "CZlib",
    ]),

  // Facade
  facade.module(
    "Touchstone",
    [
      "Bytes", "Documents", "Fleece", "FullText", "Query", "Views", "Scripts", "CBLite2", "Upgrade",
      "Encryption", "Blobs", "Storage", "System", "Logs", "StorageSQLite", "StorageLMDB", "StorageEncrypted",
      "StorageMemory", "CFileSystem", "CZip",
    ]),

  // Sync: the algorithm, and databases of one process
  sync.module(
    "Replication",
    ["Bytes", "Storage", "Logs", "Fleece", "Blobs", "Documents", "Touchstone", "CCrypto"]),
  // What replication over any network has in common.
  sync.module("ReplicationNetwork", ["Transport", "Replication", "Network"]),
  sync.module(
    "ReplicationBLIP",
    [
      "Bytes", "Storage", "Logs", "Fleece", "Blobs", "Documents", "Touchstone", "BLIP", "Transport",
      "Replication", "ReplicationNetwork", "WebSocket", "Network",
    ]),
  sync.module(
    "ReplicationHTTP",
    [
      "Bytes", "Storage", "Logs", "Fleece", "Blobs", "Documents", "Touchstone", "HTTP", "Transport",
      "Replication", "ReplicationNetwork", "Network", "CCrypto", "CZlib",
    ],
    lends: true),
  sync.module("TouchstoneSync", ["Replication", "ReplicationBLIP", "ReplicationHTTP", "Discovery"]),

  // CouchDB: answers to the requests of its clients, without sockets, and the listener over databases
  // The files of the page for people, embedded by the C compiler (docs/http-page.md).
  .target(name: "CPage", path: "Sources/CouchDB/CPage", exclude: ["Files"]),
  couchDB.module(
    "HTTPAPI",
    [
      "Bytes", "Storage", "Logs", "HTTP", "Fleece", "Blobs", "Documents", "Query", "Views", "Scripts",
      "Touchstone", "Replication", "System", "CPage", "CCrypto", "CZlib",
    ],
    lends: true, fuzzed: true),
  couchDB.module(
    "TouchstoneServer",
    [
      "Bytes", "Storage", "Logs", "Views", "Touchstone", "BLIP", "Transport", "WebSocket", "Replication",
      "ReplicationBLIP", "ReplicationHTTP", "HTTP", "HTTPAPI", "Server", "Discovery",
    ]),

  // Bindings: the interface for C, which other languages call too
  .systemLibrary(name: "CTouchstone", path: "Sources/Bindings/CTouchstone"),
  .target(
    name: "TouchstoneC",
    dependencies: [
      "Bytes", "System", "Storage", "Touchstone", "TouchstoneSync", "Replication", "TouchstoneServer",
      "CTouchstone",
    ] + (hasRocksDB ? ["StorageRocksDB"] : []),
    path: "Sources/Bindings/TouchstoneC", swiftSettings: hasRocksDB ? [.define("ROCKSDB")] : []),

  // Bench: depends on the library, never the reverse
  bench.module("BenchmarkKit", ["Bytes", "System", "ChildProcesses", "Fleece", "CTimers"]),
  bench.module(
    "Datasets",
    ["Bytes", "Storage", "SQLiteLibrary", "Fleece", "CSQLite", "CZlib", "CCrypto", "CISAL", "CSnappy"]),
  // Loops in C, also over the libraries of optional engines.
  .target(
    name: "Limits",
    dependencies: ["CSQLite", "CLMDB", "CSimdjson", "CCrypto"] + (hasRocksDB ? ["CRocksDB"] : [])
      + (hasWiredTiger ? ["CWiredTiger"] : []) + (hasPostgres ? ["CPostgres"] : []),
    path: "Sources/Bench/Limits",
    cSettings: (hasRocksDB ? [.define("ROCKSDB")] : []) + (hasWiredTiger ? [.define("WIREDTIGER")] : [])
      + (hasPostgres ? [.define("POSTGRES")] : [])),
  bench.module(
    "Suites",
    [
      "Bytes", "Touchstone", "Replication", "ReplicationBLIP", "TouchstoneSync", "HTTP", "Server",
      "TouchstoneServer", "Storage", "SQLiteLibrary", "StorageSQLite", "StorageLMDB", "StorageFlat",
      "ChildProcesses", "BenchmarkKit", "Datasets", "Limits", "CSQLite", "CLMDB", "CTimers",
    ]),

  // Tool
  .executableTarget(
    name: "touchstone",
    dependencies: [
      "Bytes", "Touchstone", "TouchstoneSync", "ReplicationHTTP", "TouchstoneServer", "Server", "HTTPAPI",
      "Documents", "Query", "Views", "Fleece", "Storage", "BenchmarkKit", "Datasets", "Suites", "CBuild",
      "CLineEditor",
    ] + optionalModules + serverModules,
    path: "Sources/Tool/CLI", swiftSettings: optionalSettings + serverSettings),
]

// Modules and programs that tests use.
let helpers: [Target] = [
  // What an engine has to pass. Writers of engines get it too.
  storage.testing("StorageConformance", ["Storage", "ChildProcesses"]),
  // What the tests of both engines over LMDB share.
  storage.testing("LMDBTestSupport", ["TestTools", "StorageConformance", "Storage", "StorageLMDB"]),
  // What all tests share, what tests with databases share, and what the programs share that tests start.
  support.testing("Expectations", []),
  support.testing("TestTools", ["Expectations", "StorageConformance", "ChildProcesses", "Storage"]),
  support.testing(
    "TestSupport",
    [
      "AtLoad", "TestTools", "StorageConformance", "Storage", "Fleece", "Touchstone", "CBLite2", "Documents",
      "Upgrade",
    ], namesEngines: true),
  support.testing("ChildSupport", []),
  .target(name: "AtLoad", path: "Tests/Support/AtLoad"),
  // The system's calls for files, and LMDB's opening of named databases.
  replacement("SystemCalls"),
  replacement("HeldHandles", ["CLMDB"]),
  // Answers match queries literally, for the tests of what is fast.
  database.testing("FullTextReference", ["FullText"]),
  // Asks random queries in all ways and compares the rows.
  database.testing(
    "QueryDifferential",
    [
      "TestSupport", "Touchstone", "Query", "FullText", "FullTextReference", "Documents", "Fleece", "Storage",
      "StorageConformance",
    ]),
  // A client that writes and reads bytes.
  wire.testing("RawHTTP", []),
  // What the tests of replication over either protocol share.
  sync.testing("ReplicationTestSupport", ["TestSupport", "Replication", "Touchstone", "Storage"]),
  // Drives processes that use one database, and compares them with a model.
  whole.testing(
    "Simulation",
    [
      "TestSupport", "StorageConformance", "ChildProcesses", "Touchstone", "TouchstoneSync",
      "TouchstoneServer", "Views", "Fleece", "RawHTTP",
    ], namesEngines: true),
  // Adds a machine whose calls fail and whose power is cut.
  whole.testing(
    "Machine",
    ["Simulation", "SystemCalls", "TestSupport", "StorageConformance", "ChildProcesses", "Touchstone"]),
  // Programs that tests start, one for each floor that needs one.
  ground.program("ground-child", "GroundChild", ["ChildSupport", "System", "Logs"]),
  wire.program(
    "server-child", "ServerChild", ["ChildSupport", "TestTools", "HTTP", "Server", "Storage", "WebSocket"]),
  storage.program(
    "storage-child", "StorageChild",
    [
      "ChildSupport", "TestTools", "StorageConformance", "StorageSQLite", "StorageLMDB", "StorageEncrypted",
      "SystemCalls", "HeldHandles",
    ], namesEngines: true),
  database.program("fleece-child", "FleeceChild", ["ChildSupport", "Fleece"]),
  database.program(
    "database-child", "DatabaseChild",
    [
      "ChildSupport", "TestSupport", "StorageConformance", "Touchstone", "SystemCalls", "ForestDBFile",
      "Datasets",
    ]),
  sync.program(
    "sync-child", "SyncChild",
    [
      "ChildSupport", "TestSupport", "StorageConformance", "Storage", "Touchstone", "TouchstoneSync",
      "TouchstoneServer",
    ]),
  whole.program(
    "whole-child", "WholeChild", ["ChildSupport", "TestSupport", "Touchstone", "Simulation", "Machine"]),
  // Asks random queries until one is answered wrongly.
  database.program(
    "random-queries", "RandomQueries", ["ChildSupport", "TestSupport", "QueryDifferential", "Touchstone"]),
  // Runs the tests in several processes (docs/testing.md).
  support.program("test-runner", "TestRunner", ["ChildProcesses", "System"]),
]

let tests: [Target] = [
  ground.tests("Bytes", ["Bytes", "Expectations"], lends: true),
  ground.tests("System", ["TestTools", "System", "ground-child"]),
  ground.tests("Logs", ["TestTools", "Logs", "ground-child"]),
  ground.tests("ChildProcesses", ["ChildProcesses", "Expectations"]),

  wire.tests("BLIP", ["Expectations", "StorageConformance", "Bytes", "Storage", "BLIP", "Transport"]),
  wire.tests(
    "WebSocket",
    ["Expectations", "StorageConformance", "Bytes", "Storage", "Transport", "BLIP", "WebSocket", "CSockets"]),
  wire.tests(
    "Network",
    [
      "TestTools", "StorageConformance", "Bytes", "Storage", "Transport", "BLIP", "HTTP", "Logs",
      "WebSocket",
      "Network",
    ]),
  wire.tests(
    "Server",
    [
      "TestTools", "RawHTTP", "Bytes", "Storage", "Logs", "HTTP", "Transport", "BLIP", "WebSocket",
      "Server",
      "CCrypto", "CSSL", "server-child",
    ]),

  storage.tests(
    "Storage",
    [
      "TestTools", "StorageConformance", "StorageSQLite", "StorageLMDB", "StorageEncrypted",
      "StorageMemory", "StorageFlat", "storage-child",
    ], namesEngines: true),
  storage.tests("StorageSQLite", ["TestTools", "StorageSQLite"]),
  storage.tests(
    "StorageLMDB",
    ["TestTools", "LMDBTestSupport", "StorageLMDB", "StorageEncrypted", "CLMDB", "storage-child"]),
  storage.tests(
    "StorageEncrypted",
    ["TestTools", "LMDBTestSupport", "StorageEncrypted", "StorageLMDB", "CLMDB", "storage-child"]),
  storage.tests("Encryption", ["TestTools", "Encryption", "Storage"]),

  database.tests("Fleece", ["TestTools", "Bytes", "Fleece", "fleece-child"]),
  database.tests(
    "FullText", ["TestTools", "FullText", "FullTextReference", "SQLiteLibrary", "CSQLite"]),
  database.tests("Blobs", ["TestSupport", "Blobs", "Storage", "Encryption", "Touchstone", "database-child"]),
  database.tests(
    "Documents", ["TestSupport", "Bytes", "Touchstone", "StorageConformance", "database-child"],
    exclude: ["Databases"]),
  database.tests(
    "Query",
    [
      "TestSupport", "Query", "Documents", "Fleece", "Storage", "Touchstone", "Datasets", "CICU",
      "FullTextReference", "SQLiteLibrary", "CSQLite", "database-child",
    ]),
  database.tests("QueryDifferential", ["QueryDifferential", "TestSupport", "Touchstone"]),
  database.tests("Scripts", ["Expectations", "Bytes", "ChildProcesses", "Scripts", "touchstone-scripts"]),
  database.tests(
    "Views",
    [
      "TestSupport", "Views", "Scripts", "Documents", "Fleece", "Storage", "StorageMemory", "Touchstone",
      "Datasets", "CICU", "database-child", "touchstone-scripts", "FullText", "FullTextReference",
    ]),

  legacy.tests(
    "CBLite2",
    [
      "TestSupport", "Touchstone", "CBLite2", "Fleece", "SQLiteLibrary", "CSQLite", "Datasets", "Storage",
      "database-child",
    ]),
  legacy.tests(
    "Upgrade",
    [
      "TestSupport", "Upgrade", "ForestDBFile", "Touchstone", "Datasets", "SQLiteLibrary", "CSQLite", "CZlib",
      "database-child",
    ]),

  facade.tests(
    "Touchstone",
    ["TestSupport", "Touchstone", "Logs", "Encryption", "Suites", "Datasets", "database-child"],
    exclude: ["PublicTypes.txt"]),
  facade.tests(
    "Conversion",
    [
      "TestSupport", "Touchstone", "Storage", "SQLiteLibrary", "StorageConformance", "Datasets",
      "database-child",
    ]),

  sync.tests(
    "Replication",
    [
      "TestSupport", "ReplicationTestSupport", "StorageConformance", "BLIP", "Transport", "Replication",
      "ReplicationNetwork", "ReplicationBLIP", "TouchstoneServer", "TouchstoneSync", "ReplicationHTTP",
      "WebSocket", "Network", "Touchstone", "Documents", "Fleece", "Blobs", "Storage", "sync-child",
    ]),
  sync.tests(
    "ReplicationHTTP",
    [
      "TestSupport", "ReplicationTestSupport", "StorageConformance", "BLIP", "Transport", "HTTP", "Network",
      "Replication", "ReplicationBLIP", "ReplicationHTTP", "TouchstoneServer", "TouchstoneSync", "Touchstone",
      "Documents", "Fleece", "Blobs", "Storage", "Server", "CZlib", "sync-child",
    ]),
  sync.tests(
    "Discovery",
    [
      "TestSupport", "Storage", "Touchstone", "Replication", "ReplicationBLIP", "ReplicationHTTP",
      "Discovery",
      "TouchstoneServer", "TouchstoneSync",
    ]),

  couchDB.tests(
    "HTTPAPI",
    [
      "TestSupport", "StorageConformance", "Bytes", "Storage", "HTTP", "HTTPAPI", "Fleece", "Blobs",
      "Documents", "Views", "Touchstone", "Replication", "Logs", "Datasets", "CZlib", "touchstone-scripts",
      "sync-child", "RawHTTP", "TouchstoneServer", "TouchstoneSync", "ReplicationTestSupport", "CCrypto",
    ]),

  bindings.tests("TouchstoneC", ["TestSupport", "Touchstone", "TouchstoneC", "CTouchstone"]),

  bench.tests("BenchmarkKit", ["BenchmarkKit", "Expectations"]),
  bench.tests("Datasets", ["ChildProcesses", "Datasets", "Expectations"]),
  bench.tests(
    "Suites",
    [
      "TestSupport", "Suites", "Limits", "Touchstone", "StorageLMDB", "StorageConformance", "touchstone",
    ], namesEngines: true),

  tool.tests("CLI", ["TestSupport", "touchstone", "Touchstone", "Datasets", "Query", "Storage", "Suites"]),

  whole.tests("Simulation", ["Simulation", "TestSupport", "whole-child"]),
]

/// Tests of engines whose libraries not every machine has.
let optionalTests: [Target] =
  hasPostgres
  ? [
    storage.tests("StoragePostgres", ["TestTools", "StoragePostgres", "ChildProcesses", "storage-child"]),
    facade.tests(
      "Locations",
      [
        "TestSupport", "Touchstone", "Blobs", "ChildProcesses", "touchstone", "database-child",
      ],
      namesEngines: true),
  ] : []

/// A program that libFuzzer drives: `Fuzz/FOLDER`.
func fuzzTarget(_ name: String, _ folder: String, _ imports: [Target.Dependency]) -> Target {
  .executableTarget(
    name: name, dependencies: ["FuzzDriver"] + imports, path: "Fuzz/\(folder)",
    swiftSettings: [.unsafeFlags(["-parse-as-library", "-sanitize=fuzzer,address"])],
    linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])])
}

let fuzzTargets: [Target] = [
  .target(name: "FuzzDriver", path: "Fuzz/Driver"),
  fuzzTarget("fuzz-fleece", "Fleece", ["Fleece"]),
  fuzzTarget("fuzz-json", "JSON", ["Fleece"]),
  fuzzTarget("fuzz-query", "Query", ["Query"]),
  fuzzTarget("fuzz-match", "Match", ["FullText"]),
  fuzzTarget("fuzz-blip", "BLIP", ["BLIP", "CZlib"]),
  fuzzTarget("fuzz-websocket", "WebSocket", ["WebSocket", "Network"]),
  fuzzTarget("fuzz-http", "HTTP", ["HTTP", "HTTPAPI", "Storage", "Touchstone"]),
  fuzzTarget("fuzz-forestdb", "ForestDB", ["ForestDBFile"]),
]

// Tests are many and run once: optimizing them takes longer than it saves. What they test and compare with is optimized.
let compared = ["StorageConformance", "QueryDifferential", "FullTextReference", "Machine"]
for target in tests + optionalTests + helpers.filter({ !compared.contains($0.name) }) {
  let unoptimized = SwiftSetting.unsafeFlags(["-Onone"], .when(configuration: .release))
  target.swiftSettings = (target.swiftSettings ?? []) + [unoptimized]
}

let targets =
  libraries + modules + optionalEngineModules + helpers + tests + optionalTests + (fuzzing ? fuzzTargets : [])

/// The targets with these names, and those that they need.
func needed(by names: [String], in targets: [Target]) -> Set<String> {
  let imports = Dictionary(uniqueKeysWithValues: targets.map { ($0.name, $0.dependencies) })
  var found: Set<String> = []
  var open = names
  while let name = open.popLast() {
    guard found.insert(name).inserted else { continue }
    for dependency in imports[name] ?? [] {
      if case .byNameItem(let name, _) = dependency { open.append(name) }
    }
  }
  return found
}

let chosen =
  testTargets.map { needed(by: $0 + ["test-runner"], in: targets) } ?? Set(targets.map(\.name))
let products: [Product] =
  [
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
  ]
  + (makesLibrary ? [.library(name: "touchstone-c", type: .static, targets: ["TouchstoneC"])] : [])
  // Engines that an app registers itself (docs/engines.md).
  + (hasRocksDB ? [.library(name: "TouchstoneRocksDB", targets: ["StorageRocksDB"])] : [])
  + (hasWiredTiger ? [.library(name: "TouchstoneWiredTiger", targets: ["StorageWiredTiger"])] : [])
  + (hasPostgres ? [.library(name: "TouchstonePostgres", targets: ["StoragePostgres"])] : [])

let package = Package(
  name: "Touchstone",
  products: testTargets == nil ? products : [],
  targets: targets.filter { chosen.contains($0.name) },
  cxxLanguageStandard: .cxx17
)
