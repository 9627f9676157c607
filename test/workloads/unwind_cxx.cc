// A C++ program with features that make stacks hard to walk: exceptions that pass through destructors, inlined callees,
// virtual calls, functions split into hot and cold parts, templates of the library. Runs until it is killed.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

volatile uint64_t sink;

inline uint64_t Mix(uint64_t x) {
  for (int i = 0; i < 60; ++i) x = x * 6364136223846793005u + (x >> 29);
  return x;
}

struct Guard {
  explicit Guard(uint64_t* at) : at_(at) {}
  ~Guard() { *at_ = Mix(*at_); }
  uint64_t* at_;
};

[[gnu::noinline]] uint64_t ThrowAt(int depth, uint64_t x) {
  Guard guard(&x);
  std::string name = "frame " + std::to_string(depth) + " of a chain that is long enough for the heap";
  if (depth == 0) throw std::runtime_error(name);
  return ThrowAt(depth - 1, Mix(x)) + name.size();
}

[[gnu::noinline]] uint64_t Catch(uint64_t x) {
  try {
    return ThrowAt(static_cast<int>(x % 12), x);
  } catch (const std::exception& e) {
    return Mix(x + std::string(e.what()).size());
  }
}

struct Shape {
  virtual ~Shape() = default;
  virtual uint64_t Area(uint64_t x) const = 0;
};
struct Square : Shape {
  uint64_t Area(uint64_t x) const override { return Mix(x) + Mix(x + 1); }
};
struct Group : Shape {
  uint64_t Area(uint64_t x) const override {
    uint64_t sum = 0;
    for (const auto& part : parts) sum += part->Area(x + sum);
    return sum;
  }
  std::vector<std::unique_ptr<Shape>> parts;
};

std::unique_ptr<Shape> MakeTree(int depth) {
  if (depth == 0) return std::make_unique<Square>();
  auto group = std::make_unique<Group>();
  for (int i = 0; i < 3; ++i) group->parts.push_back(MakeTree(depth - 1));
  return group;
}

[[gnu::noinline]] uint64_t Containers(uint64_t x) {
  std::map<std::string, uint64_t> counts;
  for (int i = 0; i < 200; ++i) {
    x = Mix(x);
    counts[std::to_string(x) + "/key"] += x;
  }
  std::vector<std::pair<std::string, uint64_t>> rows(counts.begin(), counts.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return Mix(a.second) < Mix(b.second); });
  return rows.front().second;
}

}  // namespace

int main() {
  std::unique_ptr<Shape> tree = MakeTree(4);
  for (uint64_t x = 1;;) {
    for (int i = 0; i < 20; ++i) x += Catch(x);
    x += tree->Area(x) + Containers(x);
    sink = x;
  }
}
