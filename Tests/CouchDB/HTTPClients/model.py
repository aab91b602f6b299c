"""What a database must hold after some writes, worked out in the most naive way.

It knows trees of revisions, but not how a server names new ones: the names that the server answers are taken over.
"""

import copy


def generation(rev):
    return int(rev.split("-")[0])


class Conflict(Exception):
    pass


class Missing(Exception):
    pass


class Document:
    def __init__(self):
        self.leaves = {}  # rev -> (body, is deleted, history with the newest first)
        self.attachments = {}  # name -> (bytes, type), of the winner

    def winner(self):
        """The live leaf of the highest generation, and among those the highest name; else a deleted one so."""
        def order(rev):
            return (not self.leaves[rev][1], generation(rev), rev.split("-", 1)[1])
        return max(self.leaves, key=order)

    def is_deleted(self):
        return self.leaves[self.winner()][1]


class Model:
    def __init__(self):
        self.documents = {}
        self.order = []  # ids, the one changed last at the end

    def touch(self, id):
        if id in self.order:
            self.order.remove(id)
        self.order.append(id)

    def live(self):
        return sorted(
            (id for id, document in self.documents.items() if not document.is_deleted()),
            key=lambda id: id.encode())

    def get(self, id):
        document = self.documents.get(id)
        if document is None or document.is_deleted():
            raise Missing(id)
        rev = document.winner()
        return rev, copy.deepcopy(document.leaves[rev][0])

    def must_conflict(self, id, base):
        """Whether a write on `base` (None: a new document) conflicts."""
        document = self.documents.get(id)
        if document is None:
            return False
        if base is None:
            return not document.is_deleted()
        return base not in document.leaves

    def written(self, id, base, rev, body, deleted=False):
        """The server has accepted a write and named it `rev`."""
        document = self.documents.setdefault(id, Document())
        if base is None and document.leaves:
            base = document.winner()  # a document made again continues its tombstone
        history = document.leaves.pop(base)[2] if base in document.leaves else []
        document.leaves[rev] = (copy.deepcopy(body), deleted, [rev] + history)
        self.touch(id)

    def applied(self, id, history, body, deleted=False):
        """A revision with its history came from elsewhere."""
        document = self.documents.setdefault(id, Document())
        for other in list(document.leaves.values()):
            if history[0] in other[2]:
                return  # it is known
        for rev in history[1:]:
            document.leaves.pop(rev, None)
        document.leaves[history[0]] = (copy.deepcopy(body), deleted, list(history))
        self.touch(id)

    def conflicts(self, id):
        document = self.documents[id]
        live = [rev for rev, leaf in document.leaves.items() if not leaf[1] and rev != document.winner()]
        return sorted(live)

    def changes(self):
        """Ids in the order of their last change, with the winner and whether it is deleted."""
        result = []
        for id in self.order:
            document = self.documents[id]
            result.append((id, document.winner(), document.is_deleted()))
        return result

    def view(self, map_function):
        """Rows of a view: (key, id, value), by key and id. Keys must be numbers, or all strings of ASCII letters."""
        rows = []
        for id in self.live():
            rows += [(key, id, value) for key, value in map_function(id, self.get(id)[1])]
        return sorted(rows, key=lambda row: (row[0], row[1].encode()))
