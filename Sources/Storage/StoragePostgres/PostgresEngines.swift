import CPostgres
import Storage

/// The engine over PostgreSQL and what speaks its wire (docs/storage-postgres.md).
public enum PostgresEngines {
  /// A database in a schema of a PostgreSQL server. Its location is a connection string of libpq with the name of the
  /// schema behind a `#`: `postgres://host/db#travel`.
  public static let postgres: EngineType = {
    var type = EngineType(name: "postgres", fileExtension: "postgres", encrypts: false) {
      try PostgresEngine(location: $0, options: $1)
    }
    type.server = EngineServer(
      schemes: ["postgres", "postgresql"],
      library: "libpq \(PQlibVersion() / 10_000).\(PQlibVersion() % 10_000)"
    ) {
      try PostgresHome($0, $1)
    } names: {
      try PostgresNames($0).read()
    }
    return type
  }()
}
