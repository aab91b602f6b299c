import CPostgres

/// The statements for what stands beside the entries of a database: its description and its blobs.
extension Statement {
  /// Whether the connections of a `PostgresHome` have the statement, and those of an engine don't.
  var isOfHome: Bool {
    switch self {
    case .blobNames, .blobFiles, .blob, .blobPiece, .isBlob, .addBlob, .addPiece, .endBlob, .freeName,
      .nameBlob, .markBlob, .unclaimBlob, .dropBlob, .removeName, .dropUnused:
      true
    default: false
    }
  }

  /// For how long a blob without a name is kept for the process that has stored it.
  static let claimInterval = "interval '1 day'"
  /// How many unused blobs a statement removes: an answer has to come in time.
  static let dropLimit = 100
  /// What blobs without a name are listed as.
  static let incoming = "incoming-"

  func homeSQL(_ s: String) -> String {
    switch self {
    case .blobNames: "SELECT coalesce(name, '\(Self.incoming)' || encode(id, 'hex')) FROM \(s).blobs"
    case .blobFiles: "SELECT name, id, stamp, bytes FROM \(s).blobs WHERE name IS NOT NULL"
    case .blob: "SELECT id, bytes FROM \(s).blobs WHERE name = $1"
    case .blobPiece: "SELECT bytes FROM \(s).pieces WHERE blob = $1 AND number = $2"
    case .isBlob: "SELECT bytes FROM \(s).blobs WHERE id = $1"
    case .addBlob:
      """
      INSERT INTO \(s).blobs (id, name, bytes, stamp, claimed) VALUES ($1, NULL, 0, 0, now()) \
      ON CONFLICT (id) DO UPDATE SET claimed = excluded.claimed
      """
    case .addPiece:
      """
      INSERT INTO \(s).pieces (blob, number, bytes) VALUES ($1, $2, $3) \
      ON CONFLICT (blob, number) DO UPDATE SET bytes = excluded.bytes
      """
    case .endBlob: "UPDATE \(s).blobs SET bytes = $2, claimed = now() WHERE id = $1 RETURNING 1"
    case .freeName: "UPDATE \(s).blobs SET name = NULL WHERE name = $1 AND id <> $2"
    case .nameBlob: "UPDATE \(s).blobs SET name = $1, stamp = stamp + 1 WHERE id = $2 RETURNING 1"
    case .markBlob: "UPDATE \(s).blobs SET stamp = stamp + 1 WHERE name = $1"
    case .unclaimBlob: "UPDATE \(s).blobs SET claimed = NULL WHERE id = $1"
    case .dropBlob:
      """
      WITH gone AS (DELETE FROM \(s).blobs WHERE id = $1 AND name IS NULL AND claimed IS NULL RETURNING id) \
      DELETE FROM \(s).pieces WHERE blob IN (SELECT id FROM gone)
      """
    case .removeName: "UPDATE \(s).blobs SET name = NULL WHERE id = $1 AND stamp = $2 RETURNING bytes"
    case .dropUnused:
      """
      WITH gone AS (DELETE FROM \(s).blobs WHERE id IN (SELECT id FROM \(s).blobs WHERE name IS NULL \
      AND (claimed IS NULL OR claimed < now() - \(Self.claimInterval)) LIMIT \(Self.dropLimit)) RETURNING id), \
      less AS (DELETE FROM \(s).pieces WHERE blob IN (SELECT id FROM gone) RETURNING 1) \
      SELECT count(*) FROM gone
      """
    default: ""
    }
  }

  var homeTypes: [Oid] {
    let (id, number, name) = (Self.byteaType, Self.bigintType, Self.textType)
    return switch self {
    case .blob, .markBlob: [name]
    case .blobPiece: [id, Self.integerType]
    case .addPiece: [id, Self.integerType, Self.byteaType]
    case .isBlob, .addBlob, .unclaimBlob, .dropBlob: [id]
    case .endBlob, .removeName: [id, number]
    case .freeName, .nameBlob: [name, id]
    default: []
    }
  }
}
