#include "recording/group_memory.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {
namespace {

uint64_t word_count(uint64_t bytes) {
  return (bytes + 3) / 4;
}

}  // namespace

GroupMemory::GroupMemory(const LoadedModel& model, uint32_t lane) : lane_(lane) {
  const ModelSplit* split = model.split();
  if (split == nullptr) {
    members_.push_back(std::make_unique<PassMemory>(model.device()));
    return;
  }
  link_ = split->group->link;
  for (const auto& part : split->parts) {
    members_.push_back(part ? std::make_unique<PassMemory>(part->device()) : nullptr);
  }
}

void GroupMemory::share(std::map<std::string, uint64_t> tensors) {
  shared_ = std::move(tensors);
}

HostAccess GroupMemory::with_shared(HostAccess access) const {
  for (const auto& [name, bytes] : shared_) {
    access.writes.push_back(name);
    access.reads.push_back(name);
  }
  return access;
}

Status GroupMemory::write(const std::string& name, uint64_t word, std::span<const uint32_t> values,
                          PassMemory::InFlight in_flight) {
  if (members_.size() == 1) return only().write(name, word, values, in_flight);
  for (const auto& memory : members_) {
    if (memory && memory->has(name)) VKF_CHECK(memory->write(name, word, values, in_flight));
  }
  return {};
}

Status GroupMemory::write_at(size_t at, const std::string& name, std::span<const uint32_t> values) {
  PassMemory* memory = members_[at].get();
  return memory != nullptr && memory->has(name) ? memory->write(name, 0, values) : Status{};
}

Result<size_t> GroupMemory::owner_of(const std::string& name) const {
  const auto found = owners_.find(name);
  if (found != owners_.end()) return found->second;
  for (size_t m = 0; m < members_.size() && !link_; ++m) {
    if (members_[m] && members_[m]->has(name)) return m;
  }
  return internal_error(message({"[", name, "] is read, but no member of the group wrote it"}));
}

// What comes from one member goes as one message: on a slow link each message has its price.
Status GroupMemory::bring(const std::vector<std::string>& names, size_t to) {
  std::map<size_t, std::vector<std::string>> wanted;  // by who has it
  for (const std::string& name : names) {
    const auto stale = stale_.find(name);
    if (stale == stale_.end() || stale->second.erase(to) == 0) continue;
    wanted[owners_.at(name)].push_back(name);
  }
  for (const auto& [from, tensors] : wanted) VKF_CHECK(bring_from(from, tensors, to));
  return {};
}

Status GroupMemory::bring_from(size_t from, const std::vector<std::string>& names, size_t to) {
  PassMemory* source = members_[from].get();
  PassMemory* target = members_[to].get();
  if (source == nullptr && target == nullptr) return {};
  uint64_t words = 0;
  for (const std::string& name : names) words += word_count(shared_.at(name));
  std::vector<uint32_t> message(words);
  if (source != nullptr) {
    VKF_CHECK(source->wait());
    uint64_t at = 0;
    for (const std::string& name : names) {
      const uint64_t bytes = shared_.at(name);
      const auto part = std::as_writable_bytes(std::span(message).subspan(at)).first(bytes);
      VKF_CHECK(source->read({name, 0, bytes}, part));
      at += word_count(bytes);
    }
    if (target == nullptr) return link_->send(to, lane_, std::as_bytes(std::span(message)));
  } else {
    VKF_CHECK(link_->receive(from, lane_, std::as_writable_bytes(std::span(message))));
  }
  uint64_t at = 0;
  for (const std::string& name : names) {
    const uint64_t count = word_count(shared_.at(name));
    if (target->has(name)) {
      VKF_CHECK(target->write(name, 0, std::span(message).subspan(at, count)));
    }
    at += count;
  }
  return {};
}

Status GroupMemory::submit(size_t at, std::span<const RecordingRange> ranges,
                           const std::vector<std::string>& written,
                           std::span<const TensorPart> reads) {
  PassMemory* memory = members_[at].get();
  if (members_.size() == 1) return memory->submit(ranges, reads);
  std::vector<TensorPart> parts;
  for (const std::string& name : written) {
    owners_[name] = at;
    const auto shared = shared_.find(name);
    if (shared == shared_.end()) continue;
    std::set<size_t>& stale = stale_[name];
    for (size_t m = 0; m < members_.size(); ++m) {
      if (m != at) stale.insert(m);
    }
    stale.erase(at);
    if (memory && memory->has(name)) parts.push_back({name, 0, shared->second});
  }
  if (memory == nullptr) return {};
  for (const TensorPart& part : reads) {
    const bool own = std::find(written.begin(), written.end(), part.name) != written.end();
    if (own && memory->has(part.name) && !shared(part.name)) parts.push_back(part);
  }
  return memory->submit(ranges, parts);
}

Status GroupMemory::send() {
  for (const auto& memory : members_) {
    if (memory) VKF_CHECK(memory->send());
  }
  return {};
}

Status GroupMemory::wait() {
  for (const auto& memory : members_) {
    if (memory) VKF_CHECK(memory->wait());
  }
  return {};
}

Status GroupMemory::read(const TensorPart& from, std::span<std::byte> values) const {
  if (members_.size() == 1) return only().read(from, values);
  VKF_ASSIGN(const size_t owner, owner_of(from.name));
  if (members_[owner]) VKF_CHECK(members_[owner]->read(from, values));
  return link_ ? link_->broadcast(owner, lane_, values) : Status{};
}

int64_t GroupMemory::submits() const {
  int64_t submits = 0;
  for (const auto& memory : members_) submits += memory ? memory->submits() : 0;
  return submits;
}

}  // namespace vkformer
