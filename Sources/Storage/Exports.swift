// Keys and values are bytes. Engines and those who use them compare and copy bytes, so the module comes with
// Storage.
@_exported import Bytes
