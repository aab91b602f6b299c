// Nothing is called from Swift: see KeepOpenSSL.c.
