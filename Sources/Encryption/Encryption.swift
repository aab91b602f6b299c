// Encryption
