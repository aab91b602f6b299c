extension UInt8 {
  /// The lower-case letter for an upper-case one of ASCII; any other byte as it is.
  @inlinable
  package var lowercasedASCII: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}
