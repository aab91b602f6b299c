import TestTools

@testable import Encryption

/// The primitives, against the examples that their specifications publish.
@Suite struct PublishedVectorTests {
  // RFC 7914, section 12. The last one needs 1 GiB, more than a key file may ask for.
  @Test(
    arguments: [
      (
        "", "", 16, 1, 1,
        """
        77 d6 57 62 38 65 7b 20 3b 19 ca 42 c1 8a 04 97 f1 6b 48 44 e3 07 4a e8 df df fa 3f ed e2 14 42
        fc d0 06 9d ed 09 48 f8 32 6a 75 3a 0f c8 1f 17 e8 d3 e0 fb 2e 0d 36 28 cf 35 e2 0c 38 d1 89 06
        """
      ),
      (
        "password", "NaCl", 1_024, 8, 16,
        """
        fd ba be 1c 9d 34 72 00 78 56 e7 19 0d 01 e9 fe 7c 6a d7 cb c8 23 78 30 e7 73 76 63 4b 37 31 62
        2e af 30 d9 2e 22 a3 88 6f f1 09 27 9d 98 30 da c7 27 af b9 4a 83 ee 6d 83 60 cb df a2 cc 06 40
        """
      ),
      (
        "pleaseletmein", "SodiumChloride", 16_384, 8, 1,
        """
        70 23 bd cb 3a fd 73 48 46 1c 06 cd 81 fd 38 eb fd a8 fb ba 90 4f 8e 3e a9 b5 43 f6 54 5d a1 f2
        d5 43 29 55 61 3f 0f cf 62 d4 97 05 24 2a 9a f9 e6 1e 85 dc 0d 65 1e 40 df cf 01 7b 45 57 58 87
        """
      ),
    ] as [(String, String, UInt64, UInt64, UInt64, String)])
  func scryptGivesWhatRFC7914Says(
    password: String, salt: String, n: UInt64, r: UInt64, p: UInt64, expected: String
  ) throws {
    let derived = try KeyDerivation.scrypt(n: n, r: r, p: p)
      .derive(SecretBytes(password.utf8), salt: Array(salt.utf8), info: [], count: 64)
    expect(bytes(of: derived), equals: hex(expected))
  }

  // RFC 5869, appendix A, the three cases of SHA-256.
  @Test(
    arguments: [
      (
        [UInt8](repeating: 0x0b, count: 22), Array(0x00...0x0c), Array(0xf0...0xf9),
        """
        3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865
        """
      ),
      (
        Array(0x00...0x4f), Array(0x60...0xaf), Array(0xb0...0xff),
        """
        b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09
        da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87
        """
      ),
      (
        [UInt8](repeating: 0x0b, count: 22), [], [],
        """
        8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8
        """
      ),
    ] as [([UInt8], [UInt8], [UInt8], String)])
  func hkdfGivesWhatRFC5869Says(
    secret: [UInt8], salt: [UInt8], info: [UInt8], expected: String
  ) throws {
    let wanted = hex(expected)
    let derived = try KeyDerivation.hkdfSHA256
      .derive(SecretBytes(secret), salt: salt, info: info, count: wanted.count)
    expect(bytes(of: derived), equals: wanted)
  }

  // The GCM specification submitted to NIST (McGrew, Viega), appendix B, test cases 13 to 16: AES-256 with nonces
  // of 96 bits.
  @Test(arguments: [
    (
      String(repeating: "00", count: 32), "000000000000000000000000", "", "",
      "530f8afbc74536b9a963b4f1c4cb738b"
    ),
    (
      String(repeating: "00", count: 32), "000000000000000000000000", "00000000000000000000000000000000", "",
      "cea7403d4d606b6e074ec5d3baf39d18 d0d1c8a799996bf0265b98b5d48ab919"
    ),
    (
      "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
      """
      d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
      1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255
      """, "",
      """
      522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
      8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad
      b094dac5d93471bdec1a502270e3cc6c
      """
    ),
    (
      "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
      """
      d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
      1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39
      """, "feedfacedeadbeeffeedfacedeadbeefabaddad2",
      """
      522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
      8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662
      76fc6ece0f4e1768cddf8853bb2d551b
      """
    ),
  ])
  func gcmGivesWhatItsSpecificationSays(
    key: String, nonce: String, plaintext: String, additionalData: String, sealed: String
  ) throws {
    let key = SecretBytes(hex(key))
    let (nonce, additionalData) = (hex(nonce), hex(additionalData))
    try expect(
      AES256GCM.seal(SecretBytes(hex(plaintext)), key: key, nonce: nonce, additionalData: additionalData),
      equals: hex(sealed))
    let opened = try AES256GCM.open(hex(sealed), key: key, nonce: nonce, additionalData: additionalData)
    expect(opened.map(bytes), equals: hex(plaintext))
  }

  @Test func gcmOpensNothingOfWhichABitIsChanged() throws {
    let key = SecretBytes(Array(0..<32))
    let nonce = Array(UInt8(100)..<112)
    let additionalData: [UInt8] = [1, 2, 3]
    let sealed = try AES256GCM.seal(
      SecretBytes(Array("attack at dawn".utf8)), key: key, nonce: nonce, additionalData: additionalData)
    for bit in 0..<sealed.count * 8 {
      var changed = sealed
      changed[bit / 8] ^= 1 << (bit % 8)
      try expect(AES256GCM.open(changed, key: key, nonce: nonce, additionalData: additionalData) == nil)
    }
    try expect(AES256GCM.open(sealed, key: key, nonce: nonce, additionalData: [1, 2, 4]) == nil)
    try expect(AES256GCM.open([1, 2, 3], key: key, nonce: nonce, additionalData: additionalData) == nil)
  }

  @Test func sha256GivesWhatFIPS180Says() throws {
    try expect(
      sha256(Array("abc".utf8)),
      equals: hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
  }
}
