/// Public keys that `openssl` has made, and tokens that Python's `cryptography` has signed with the private ones.
enum SignedTokens {
  static let rsaKey =
    "-----BEGIN PUBLIC KEY-----\\n"
    + "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA4VWr96Fue7l4RLnEZzNo\\n"
    + "A8a3NQN1PWUwdYekEk3EtNIs4Ud63EjYQdC0avjtRRyRF4xHBZl/MnL5EjftcaDE\\n"
    + "o/1qRxlfP6fqMVBsB6Y8Wiu1OdyZEynI8Mi/eed63z+KhB2nTyzFuF4YzwPkWC+X\\n"
    + "e1UWgMB90OF/AuXo42vzjLCl6tGlU2fC2OVO9bKYdXMiS/nLFKnzpZdYle53ykIp\\n"
    + "5tEEl8vF2SgiYqC8R3lACbD65CnXOy/X8HD4QAXpQELHTP54UKP1h/RLKsfHXlIn\\n"
    + "zOdtuxaFlecwGVqNa7DJfChQKYh3bC1V6RGBoOaB56iQJS954dVF/yk/ewCsGiMB\\n"
    + "twIDAQAB\\n"
    + "-----END PUBLIC KEY-----"
  static let smallRSAKey =
    "-----BEGIN PUBLIC KEY-----\\n"
    + "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCw20acZw2wsptLxcjpC4LCZFCz\\n"
    + "8aMZcbYkHD5GXlYbUQ0q+2psUk7gqcR5oC0D3dZT+BLZATH3Ff42DhfaAQPawdfN\\n"
    + "hdks2QCfV7x6iWiDliBJqlyISDaKejCQDmRrEsYpOwmQMa5bMd8Zpixqli/jg9Ot\\n"
    + "YE8db+cC0mDt02DufwIDAQAB\\n"
    + "-----END PUBLIC KEY-----"
  static let p256Key =
    "-----BEGIN PUBLIC KEY-----\\n"
    + "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEUcaNPfbWHM+UuAjtnZ1eE431V8gA\\n"
    + "aju1oxc4/N2qxhRFrkSquVxIqW7l7t+iFA8R9wOsQk6NZwt6+5l8zd3DoA==\\n"
    + "-----END PUBLIC KEY-----"
  static let p384Key =
    "-----BEGIN PUBLIC KEY-----\\n"
    + "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE76rZa4fRLgIpimmE2y53cHG0ca65GwM7\\n"
    + "n2FaV1QeMIqSXkFoFO9kR+TKbtb52/TqgEcSt4zMo6Y+5ojD8GHrMxiZ3+7T4pEj\\n"
    + "DEIO6/cppU5SVQEcifZ0ksgR5VmCMS0R\\n"
    + "-----END PUBLIC KEY-----"
  static let p521Key =
    "-----BEGIN PUBLIC KEY-----\\n"
    + "MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQBnhail9TpxQt/cF+hRBHu51iwPsNI\\n"
    + "fEZO9hq4/UiFdUhAj1at+G2HO5IDofY/Dtd/paf79gutsQynv7E21WkOPP4B4Jtp\\n"
    + "x774BPk3Y0Tb3yrUr0WIKQZK4Cbk//hd8QoT9SfsnxM4XgRc26RjnTaL/hlkOTsE\\n"
    + "JgQMUZohClSP+LU+VSE=\\n"
    + "-----END PUBLIC KEY-----"
  static let rs256 =
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4iLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwieCJdfQ."
    + "1D4OmfhDjSinRHriFml5odziRIjt2hqVp1a_IYN7S23WODKxCcBoJiJFH-Klwd7JIiQb91EI9cR6P9ulvPARtgx9y_zuECG59hUd"
    + "pHYt1mjsyG8ByZEXbSveIp5GGKa-zfgUYLZ2qpPwWgXQJH2iBw1GHq9THZyku1mMHr-oUqx7fW5Af7-WESDVAyLYAyH08djj0eC-"
    + "d3rZr7Rt3vvmtHQBztFK2KDdlGPL8J6CyTrbgJyRWpjlUNeNy4NaniZDaxAbnJ92446kqR8quCb0dCmubP2IlkAqxX7iOA2BbJKj"
    + "fMqr79saeybzMd8SS4R5lcr-8SG4kiwxgexOPBQpPQ"
  static let rs384 =
    "eyJhbGciOiJSUzM4NCIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4iLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwieCJdfQ."
    + "uLYKgTHfVs878GPJ3Jl-KeARIHYFiEs56GCTmMpyetqB6dnjLgSO6dMGnk64hQ3u1BH0kpsP4HjGtWrfYfM7bYSaslYjy4hR1zCU"
    + "sFN6Gbg7_SBrg1QPagBpVLLnTKFln5IbeCDCtCvISsfTIHWs9XKr1DTMsQhU8aRctT4XRStdKlhDoWu5nyUrM1X2oWMbVkvw06nh"
    + "5OhzMHUwDWA7ZgQU4kJEVr0zddd9gMXY5aCycFOGPMis_8Qza6wFJeXgUETR1AKxI10p0g3Zvwye7E3wLlve-VdTVTVlgmeYuIrO"
    + "7jIV3IHO7NLfJVkek1HaD0ivkL9zPsR6Vxorv816eg"
  static let rs512 =
    "eyJhbGciOiJSUzUxMiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4iLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwieCJdfQ."
    + "sbBdmEScYu_dbhN4HBB5DsQ4q5D-IEQ9rz_oVFBh_aIdUQV7QimCF52aIRhce9Rg1x1TiVzKXdtGL2r49De4GIrghWZ5vIAe9WhP"
    + "x7jWPadUWsGbYqjgph9s7d-k_VtxgjyFcTQ4H3CLpDuj5mG8vP_atBIG-pI2B_Wxws8DtP-1zjt8Mcf_x7appca3QPYiuxvOpHte"
    + "E3nREvzfFECktzYiAGax99cHaKiZLnv1gxfBe13eU8-5Du96okmGmOZ5gOE7kJqKlnNSuQDqAeUExs37w4q6c1UNtskVGTsIN-Ch"
    + "wYYysOf4BQUI_f_mg98ru-KAxcSxQJEeQe9ZJYRrMg"
  static let es256 =
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImUyNTYifQ.eyJzdWIiOiJhbm4iLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwieCJdf"
    + "Q.viL6pvQZEdVKcOdJJ3CPkIviU3tH6UcuQVi80jk5fQ4trgvnGdrWe0zqMqxKsNDtdAihLEHv0rHNlaDDYQ66yQ"
  static let es384 =
    "eyJhbGciOiJFUzM4NCIsImtpZCI6ImUzODQifQ.eyJzdWIiOiJhbm4iLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwieCJdf"
    + "Q.3bl6-XIUgwRYAw-LO41YQy8XMdtbWXNDBoqRL4CHB6EywFm-O0-h2bPyQxzFh3EUYwwGF5pS4t_Z4yy-Bw8cCguVH7cNUYNjuA"
    + "RKIG-yZ-yVu8KKlHumOk9XTC4eY7sc"
  static let es512 =
    "eyJhbGciOiJFUzUxMiIsImtpZCI6ImU1MTIifQ.eyJzdWIiOiJhbm4iLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwieCJdf"
    + "Q.AOQx9-Cdkq814oTQfTjtwUs17Ur97gXzScs4PL4JYBS9OuMaQi_oLU03_z6mZxUTWLDoVUy8YaIj_K7uhyuNgHJvAR4xRAa6Cy"
    + "ti-KYlxQVgxrTpmSm9d7avLrOiTQAgjNj90OOkmOiD_kasSBJF6MSXQkLmI06Z71MlF9d6x1O8EYXh"
}
