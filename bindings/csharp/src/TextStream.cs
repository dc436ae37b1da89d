// Texts that are read while they are written.
using System;
using System.Collections;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Vkformer
{
    /// <summary>Pieces of a text, for foreach and for await foreach. It can be read once. The thread that writes
    /// runs ahead of a slow reader by 64 pieces at most.</summary>
    public sealed class TextStream : IAsyncEnumerable<string>, IEnumerable<string>, IAsyncDisposable, IDisposable
    {
        private readonly Queue<string> pieces = new Queue<string>();
        private readonly SemaphoreSlim filled = new SemaphoreSlim(0);
        private readonly SemaphoreSlim room = new SemaphoreSlim(64);
        private readonly CancellationTokenSource stop;
        private readonly Task<Finding> work;
        private int read;

        internal TextStream(Func<OnText, Finding> generate, CancellationToken cancellation)
        {
            stop = CancellationTokenSource.CreateLinkedTokenSource(cancellation);
            work = Task.Factory.StartNew(() =>
            {
                try { return generate(Hand); }
                finally { filled.Release(); }  // the end
            }, CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default);
        }

        private bool Hand(int input, int sequence, string piece)
        {
            room.Wait(stop.Token);  // throws what ends the call
            lock (pieces) pieces.Enqueue(piece);
            filled.Release();
            return true;
        }

        private bool Take(out string piece)
        {
            lock (pieces)
            {
                piece = pieces.Count == 0 ? null : pieces.Dequeue();
                if (piece == null) return false;
            }
            room.Release();
            return true;
        }

        /// <summary>The whole text, once all is read.</summary>
        public Task<Finding> Result { get { return work; } }

        private void Once()
        {
            if (Interlocked.Exchange(ref read, 1) != 0) throw new InvalidOperationException("The stream was read before. Generate the text again.");
        }

        public IEnumerator<string> GetEnumerator()
        {
            Once();
            return new Reader(this, CancellationToken.None);
        }

        IEnumerator IEnumerable.GetEnumerator() { return GetEnumerator(); }

        public IAsyncEnumerator<string> GetAsyncEnumerator(CancellationToken cancellation = default(CancellationToken))
        {
            Once();
            return new Reader(this, cancellation);
        }

        /// <summary>Cancels what still runs, and waits until it has stopped.</summary>
        public void Dispose()
        {
            stop.Cancel();
            try { work.Wait(); }
            catch (AggregateException) { }  // the reader was told
        }

        public ValueTask DisposeAsync() { return new ValueTask(End()); }

        private async Task End()  // mcs makes async methods of Task alone
        {
            stop.Cancel();
            try { await work.ConfigureAwait(false); }
            catch (Exception) { }
        }

        private sealed class Reader : IEnumerator<string>, IAsyncEnumerator<string>
        {
            private readonly TextStream stream;
            private readonly CancellationTokenRegistration registration;
            private string current;

            public Reader(TextStream stream, CancellationToken cancellation)
            {
                this.stream = stream;
                registration = cancellation.Register(stream.stop.Cancel);
            }

            public string Current { get { return current; } }
            object IEnumerator.Current { get { return current; } }

            public bool MoveNext()
            {
                stream.filled.Wait();
                if (stream.Take(out current)) return true;
                stream.filled.Release();
                stream.work.GetAwaiter().GetResult();  // throws what went wrong
                return false;
            }

            public ValueTask<bool> MoveNextAsync() { return new ValueTask<bool>(Move()); }

            private async Task<bool> Move()
            {
                await stream.filled.WaitAsync().ConfigureAwait(false);
                if (stream.Take(out current)) return true;
                stream.filled.Release();
                await stream.work.ConfigureAwait(false);
                return false;
            }

            public void Reset() { throw new NotSupportedException("A stream can be read once."); }

            public void Dispose()
            {
                registration.Dispose();
                stream.Dispose();
            }

            public ValueTask DisposeAsync()
            {
                registration.Dispose();
                return stream.DisposeAsync();
            }
        }
    }
}
