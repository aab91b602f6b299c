import Storage

/// Runs `body` as on a file system that lacks some ways to name a new file.
package func withFileSystem<Result>(
  hardLinks: Bool = false, exclusiveRenames: Bool, _ body: () throws -> Result
) rethrows -> Result {
  var abilities = NewFileName.Abilities()
  abilities.hardLinks = hardLinks
  abilities.exclusiveRenames = exclusiveRenames
  return try NewFileName.$abilities.withValue(abilities, operation: body)
}
