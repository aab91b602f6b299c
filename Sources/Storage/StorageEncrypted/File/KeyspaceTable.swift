import Storage

/// The keyspaces of one state of the file, sorted by number.
struct KeyspaceTable {
  struct Item {
    let name: String
    let keyspace: Keyspace
    var tree: Tree
  }

  /// The place that stands for the tree of the keyspaces themselves.
  static let directoryPlace = -1

  private(set) var items: [Item] = []
  /// The tree that holds the keyspaces. Empty if the root holds them.
  var directory = Tree()
  private var numbers: [Int] = []
  private var places: [String: Int] = [:]

  /// Returns the place of a keyspace by its number, or nil.
  @inline(__always)
  func place(of number: Int) -> Int? {
    numbers.withUnsafeBufferPointer { numbers in
      var low = 0
      var high = numbers.count
      while low < high {
        let middle = (low &+ high) >> 1
        if numbers[middle] < number { low = middle &+ 1 } else { high = middle }
      }
      return low < numbers.count && numbers[low] == number ? low : nil
    }
  }

  subscript(place: Int) -> Tree {
    @inline(__always) get { place < 0 ? directory : items[place].tree }
    set { if place < 0 { directory = newValue } else { items[place].tree = newValue } }
  }

  func item(named name: String) -> Item? { places[name].map { items[$0] } }

  var keyspaces: [String: Keyspace] {
    Dictionary(uniqueKeysWithValues: items.map { ($0.name, $0.keyspace) })
  }

  /// Adds a keyspace. Returns false if its number isn't greater than all others or its name is taken.
  @discardableResult
  mutating func add(_ item: Item) -> Bool {
    guard item.keyspace.number > numbers.last ?? 0, places[item.name] == nil else { return false }
    places[item.name] = items.count
    items.append(item)
    numbers.append(item.keyspace.number)
    return true
  }

  mutating func remove(at place: Int) {
    items.remove(at: place)
    numbers.remove(at: place)
    places = Dictionary(uniqueKeysWithValues: items.enumerated().map { ($0.element.name, $0.offset) })
  }
}
