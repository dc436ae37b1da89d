// needs: score_terms.glsl, key_range.glsl and what they need.
// The keys that a group of neighboring queries visits, as positions 0 ... count - 1: global keys,
// then a prefix, then an interval; or the entries of a block map. Most pairs that are omitted are
// masked for all of the group; what is left is decided pair by pair. The interval comes last, so
// that the position of a key does not depend on padding after it.
struct KeyWalk {
  uint count;         // positions
  uint listed;        // of them, first: global keys
  uint list;          // the word of the first global key, or of the first entry
  uint lead;          // positions before the interval
  uint prefix_begin;  // the key at position `listed`, where lead is above it
  uint begin;         // the first key of the interval
  uint end;           // one past its last
  uint block;         // keys of an entry; 0: there is no block map
};

KeyWalk interval_walk(uvec2 keys) {
  const uint count = keys.x < keys.y ? keys.y - keys.x : 0u;
  return KeyWalk(count, 0u, 0u, 0u, 0u, keys.x, keys.y, 0u);
}

// The entries of queries first ... last follow each other.
KeyWalk block_walk(ScoreTermsParams t, uint b, uint h, uint first, uint last) {
  const uint blocks = sparse_term(t, VKF_SPARSE_BLOCKS);
  const uint begin = terms[block_row(t, b, h, first)];
  const uint end = terms[block_row(t, b, h, last) + 1u];
  KeyWalk walk = interval_walk(uvec2(0u));
  walk.block = terms[blocks];
  walk.list = blocks + begin;
  walk.count = (end - begin) / 2u * walk.block;
  return walk;
}

// The tokens from the first to the last of all documents that the queries belong to.
uvec2 document_range(ScoreTermsParams t, uint b, uint first, uint last) {
  const uint begins = sparse_term(t, VKF_SPARSE_DOCUMENTS) + b * 2u * VKF_TERM_KEYS;
  uvec2 range = uvec2(VKF_TERM_KEYS, 0u);
  for (uint i = first; i <= last; ++i) {
    range.x = min(range.x, terms[begins + i]);
    range.y = max(range.y, terms[begins + VKF_TERM_KEYS + i]);
  }
  return range;
}

KeyWalk key_walk(ScoreTermsParams t, uint b, uint h, uint first, uint last) {
  uvec2 keys = key_range(t, first, last);
  if ((t.flags & VKF_TERM_SPARSE) == 0u) return interval_walk(keys);
  if ((t.flags & VKF_TERM_BLOCKS) != 0u) return block_walk(t, b, h, first, last);
  uint listed = 0u;
  uint list = 0u;
  if ((t.flags & VKF_TERM_GLOBAL) != 0u) {
    const uint tokens = global_tokens(t, b);
    list = tokens + 1u + ((VKF_TERM_KEYS + 31u) >> 5u);
    listed = terms[tokens];
    bool all = false;
    for (uint i = first; i <= last; ++i) all = all || query_widens(t, b, i);
    if (all) {
      listed = 0u;
      keys = uvec2(0u, VKF_TERM_KEYS);
    }
  }
  keys.y = max(keys.x, keys.y);
  uvec2 bounds = uvec2(0u, VKF_TERM_KEYS);
  if ((t.flags & VKF_TERM_DOCUMENTS) != 0u) bounds = document_range(t, b, first, last);
  keys = clamp(keys, bounds.xx, bounds.yy);
  uvec2 prefix = uvec2(keys.x);
  if ((t.flags & VKF_TERM_PREFIX) != 0u) {
    const uint end = terms[sparse_term(t, VKF_SPARSE_PREFIX) + b];
    prefix = clamp(uvec2(0u, end), bounds.xx, bounds.yy);
    if (prefix.x < prefix.y && prefix.y >= keys.x) {
      keys = uvec2(prefix.x, max(prefix.y, keys.y));
      prefix = keys.xx;
    }
  }
  const uint lead = listed + prefix.y - prefix.x;
  return KeyWalk(lead + keys.y - keys.x, listed, list, lead, prefix.x, keys.x, keys.y, 0u);
}

// The key at position n, and with a block map the word of its entry.
uint walk_key(KeyWalk walk, uint n, out uint entry) {
  entry = 0u;
  if (walk.block != 0u) {
    entry = walk.list + n / walk.block * 2u;
    return min(terms[entry] * walk.block + n % walk.block, VKF_TERM_KEYS - 1u);
  }
  if (n >= walk.lead) return walk.begin + n - walk.lead;
  return n < walk.listed ? terms[walk.list + n] : walk.prefix_begin + n - walk.listed;
}

// Does a key (its index, position and entry) count for a query (batch, head, index)? Keys that
// stand at two positions count at the later one; entries count for the queries whose they are.
bool walk_counts(KeyWalk walk, ScoreTermsParams t, uvec3 query, uvec3 key) {
  const uint j = key.x;
  if (walk.block == 0u) {
    if (key.y >= walk.listed) return true;
    const bool in_prefix =
        j >= walk.prefix_begin && j - walk.prefix_begin < walk.lead - walk.listed;
    return !in_prefix && (j < walk.begin || j >= walk.end);
  }
  const uint blocks = sparse_term(t, VKF_SPARSE_BLOCKS);
  const uint row = block_row(t, query.x, query.y, query.z);
  if (key.z < blocks + terms[row] || key.z >= blocks + terms[row + 1u]) return false;
  return terms[key.z] * walk.block + key.y % walk.block < VKF_TERM_KEYS;
}

// What an entry adds to its scores.
float walk_bias(KeyWalk walk, uint entry) {
  return walk.block == 0u ? 0.0 : uintBitsToFloat(terms[entry + 1u]) * VKF_TERM_TEMPERATURE;
}
