import Storage

/// Runs `body` as on a file system that lacks some ways to name a new file, or to make one without a name.
package func withFileSystem<Result>(
  hardLinks: Bool = false, exclusiveRenames: Bool, namelessFiles: Bool = true, _ body: () throws -> Result
) rethrows -> Result {
  var abilities = NewFileName.Abilities()
  abilities.hardLinks = hardLinks
  abilities.exclusiveRenames = exclusiveRenames
  abilities.namelessFiles = namelessFiles
  return try NewFileName.$abilities.withValue(abilities, operation: body)
}
