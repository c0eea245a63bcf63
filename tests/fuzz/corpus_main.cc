// Replays a folder of inputs through a fuzz target, for builds without libFuzzer. Exits 1 where
// there is no input: an empty corpus tests nothing. An input that takes more memory than
// kMaxInputMemory fails.
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// Two chunks as they are decoded (timeline::kMaxChunkMemory), where a target reads a timeline and
// writes another one.
constexpr size_t kMaxInputMemory = size_t{96} << 20;

std::atomic<size_t> taken{0};  // by operator new, and not given back
std::atomic<size_t> most{0};   // of taken since the input began

void* Take(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  const size_t now = taken += malloc_usable_size(memory);
  if (now > most) most = now;
  return memory;
}

void GiveBack(void* memory) {
  taken -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return Take(size); }
void* operator new[](size_t size) { return Take(size); }
void operator delete(void* memory) noexcept { GiveBack(memory); }
void operator delete[](void* memory) noexcept { GiveBack(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { GiveBack(memory); }
void operator delete[](void* memory, size_t /*size*/) noexcept { GiveBack(memory); }

int main(int argc, char** argv) {
  int replayed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& file : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(file.path(), std::ios::binary);
      const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
      const size_t before = taken;
      most = before;
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
      if (most - before > kMaxInputMemory) {
        std::printf("%s takes %zu MiB of memory, more than %zu\n", file.path().c_str(),
                    (most - before) >> 20, kMaxInputMemory >> 20);
        return 1;
      }
      ++replayed;
    }
  }
  std::printf("%d inputs replayed\n", replayed);
  return replayed > 0 ? 0 : 1;
}
