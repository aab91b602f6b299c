// A full-text index that is a list of documents' terms: each query looks at each of them, literally.

import FullText
