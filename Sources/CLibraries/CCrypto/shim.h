#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Names of parameters that stay: an OSSL_PARAM keeps the pointer to its name, and that of a Swift string ends with the call.
static const char *const ccryptoDigest = OSSL_ALG_PARAM_DIGEST;
static const char *const ccryptoKey = OSSL_KDF_PARAM_KEY;
static const char *const ccryptoSalt = OSSL_KDF_PARAM_SALT;
static const char *const ccryptoInfo = OSSL_KDF_PARAM_INFO;
