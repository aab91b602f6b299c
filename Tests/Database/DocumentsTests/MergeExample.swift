import Touchstone

/// Merges two objects by what each side changed since their common ancestor. Where both changed one thing, objects
/// are merged member by member, and of anything else the remote one is taken.
func merge(_ base: JSONValue?, _ local: JSONValue?, _ remote: JSONValue?) -> JSONValue? {
  if local == remote || local == base { return remote }
  if remote == base { return local }
  guard case .object(let left)? = local, case .object(let right)? = remote else { return remote }
  var merged = JSONObject()
  for name in Set(left.keys + right.keys) {
    merged[name] = merge(base?.object?[name], left[name], right[name])
  }
  return .object(merged)
}

/// Merges what comes in with what is here; a deletion wins, and without the ancestor's body the default rules decide.
struct MergingResolver: ConflictResolver {
  func resolve(_ conflict: Conflict) -> ConflictResolution {
    guard !conflict.local.isDeleted, !conflict.remote.isDeleted, let base = conflict.commonAncestor?.body,
      let merged = merge(base, conflict.local.body, conflict.remote.body)
    else { return DefaultConflictResolver().resolve(conflict) }
    return .merged(merged)
  }
}
