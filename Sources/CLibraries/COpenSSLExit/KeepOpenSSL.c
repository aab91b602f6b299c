// Keeps OpenSSL usable while the process exits.
//
// OpenSSL cleans itself up in exit(), by a handler that its first use registers. Other threads may be in the middle of a handshake
// or a digest then, and would use freed memory. So the first use is here, when the program is loaded, and says that there is no
// such handler (OPENSSL_init_crypto(3)). The system takes the memory back.

#include <openssl/crypto.h>

__attribute__((constructor)) static void keep_openssl(void) { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }
