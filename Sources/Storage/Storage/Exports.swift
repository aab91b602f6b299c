// Keys and values are bytes. Engines and those who use them compare and copy bytes, so the module comes with
// Storage. So does the module of files, threads and errors.
@_exported import Bytes
@_exported import System
