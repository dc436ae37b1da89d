// needs: sampling.h, row_best.glsl, float_bits.glsl, `uint known[]` of the workgroup, storage
// buffers with `float scores[]` and `uint draws[]`. A row of token_sample between its stages: what
// they have found, and which tokens that leaves.
const float kWhole = 2147483648.0;  // the mass of all tokens

// Words of what the softmax gave.
const uint kLogPeak = 0u, kLog = 1u, kPeak = 2u, kTotal = 3u, kBestKey = 4u, kBestToken = 5u;

ChoiceRow c;
uint base;   // of the row's scores
uint first;  // of its tokens in this part
uint count;  // of the part's tokens
uint part, parts;
uint row_at;  // of its words in `draws`

// The softmax, and which tokens are left of it.
struct Row {
  float scale;  // 1 / temperature
  float peak;   // largest score over temperature
  float total;  // sum of exp(score / temperature - peak)
  // Kept: larger keys than `key`, equal ones up to token `last_tie`, and of those what reaches
  // `least` of the likeliest token's probability.
  uint key;
  uint last_tie;
  float least;
  // Kept of those: where `typical`, tokens whose surprise is at most so far from the entropy.
  bool typical;
  float log_kept;  // log of the sum of the kept ones' exp(...)
  float entropy;
  uint near_key;
};
Row r;

uint found_at(uint stage) { return VKF_DRAW_SUMS + 2u * stage; }

float known_float(uint at) { return uintBitsToFloat(known[at]); }

// Two words of a part's: stages take turns, so that none writes what others still read.
uint part_at(uint of_part, uint stage) {
  return row_at + VKF_DRAW_PARTS + of_part * VKF_DRAW_PART_WORDS + 6u + (stage & 1u);
}

uint bins_at(uint stage) { return row_at + VKF_DRAW_KNOWN + (stage % 3u) * VKF_DRAW_DIGITS; }

bool is_digit(uint stage) {
  return (stage >= VKF_STAGE_TOP_K && stage < VKF_STAGE_TIES) ||
         (stage >= VKF_STAGE_TYPICAL && stage < VKF_STAGE_MASS);
}

// Whether the row has neither a NaN nor lacks a possible token.
bool can_draw() { return !is_nan(known_float(kLog)) && !is_negative_infinity(known_float(kPeak)); }

// Whether the row's settings ask for a stage after the first.
bool applies(uint stage) {
  if (stage >= VKF_STAGE_MASS) return true;
  if (!can_draw() || c.temperature == 0.0) return false;
  if (stage < VKF_STAGE_TOP_P) return c.top_k != 0u;
  if (stage < VKF_STAGE_LEFT) return c.top_p < 1.0;
  return c.typical_p < 1.0;
}

float logit_of(uint v) { return scores[base + v] * r.scale; }

// exp(x - peak), 0 for what is impossible.
float weight_over(float x, float peak) {
  return is_negative_infinity(x) ? 0.0 : exp_nonpositive(x - peak);
}

uint mass_of(float x) { return uint(weight_over(x, r.peak) / r.total * kWhole + 0.5); }

// The key by which typical sampling ranks: nearer to the entropy is larger.
uint near_key_of(float x) { return order_key(-abs(r.log_kept - (x - r.peak) - r.entropy)); }

bool is_kept(uint v, float x) {
  const uint key = order_key(x);
  if (is_negative_infinity(x) || key < r.key || (key == r.key && v > r.last_tie)) return false;
  return weight_over(x, r.peak) >= r.least && (!r.typical || near_key_of(x) >= r.near_key);
}

// The score over temperature that has this key.
float key_score(uint key) {
  return uintBitsToFloat((key & 0x80000000u) != 0u ? key ^ 0x80000000u : ~key);
}

// What is left before a stage.
void read_row(uint stage) {
  r.scale = c.temperature > 0.0 ? 1.0 / c.temperature : 1.0;
  r.peak = known_float(kPeak);
  r.total = known_float(kTotal);
  r.key = 0u;
  r.last_tie = VKF_NO_TOKEN;
  r.least = stage < VKF_STAGE_LEFT ? 0.0 : c.min_p;
  r.typical = false;
  r.log_kept = known_float(found_at(VKF_STAGE_LEFT));
  r.entropy = known_float(found_at(VKF_STAGE_SURPRISE));
  r.near_key = 0u;
  if (c.temperature == 0.0) {
    r.least = 0.0;
    r.key = known[kBestKey];
    r.last_tie = known[kBestToken];
    return;
  }
  if (c.top_k != 0u && stage >= VKF_STAGE_TOP_P) r.key = known[found_at(VKF_STAGE_TOP_P - 1u)];
  if (c.top_p < 1.0 && stage >= VKF_STAGE_LEFT) {
    r.key = known[found_at(VKF_STAGE_TIES - 1u)];
    r.last_tie = known[found_at(VKF_STAGE_LAST_TIE)];
  }
  r.typical = c.typical_p < 1.0 && stage >= VKF_STAGE_MASS;
  r.near_key = known[found_at(VKF_STAGE_MASS - 1u)];
}

void remember(uint at, uint value) {
  known[at] = value;
  if (part == 0u) draws[row_at + at] = value;
}
