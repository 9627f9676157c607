#pragma once

#include "reducer/store/store.h"

namespace tributary::store {

Trie EmptyTrie();  // the root, and the row of no frame

}  // namespace tributary::store
