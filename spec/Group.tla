--------------------------------- MODULE Group ---------------------------------
(* A ceiling for all nodes of a group, over a network that loses and delays, with *)
(* leases and a store that may forget.  Each node has one message under way.  A   *)
(* node fences itself when its lease is nearly over; what it has at the backend   *)
(* then ends within Abort ticks.  Clocks do not drift: see WindowLease.  Lease 0: *)
(* no time passes.                                                                *)
(*                                                                                *)
(* Numbers of requests and of grants are renamed after each step so that their    *)
(* order stays: there is no bound on them.  What must hold for any N: shares.md.  *)
EXTENDS Integers, FiniteSets
CONSTANTS N, Limit, Lease, Abort, Forgets,
          Low,     \* 0, or what Limit falls to, once
          High,    \* guard: what was granted earlier and is not confirmed is reserved
          Held,    \* guard: what is in force is reported
          Flight,  \* guard: what is in flight is reported
          Cap,     \* guard: what others are reserved is taken off
          Told,    \* guard: the fence falls Abort ticks before the lease is over
          Sent,    \* guard: a lease counts from the sending
          Early,   \* the store's leases are so much shorter; guard at 0
          Quiet,   \* guard: a store that forgot grants nothing more for a lease
          Lost,    \* guard: what is under way when the fence falls is lost
          Late,    \* a report may prove nothing, or bring a proof of a life before
          Own,     \* guard: a proof of another life is none
          Keeps    \* guard at 0: a node keeps its part when L falls (1); less what others
                   \* have in flight above their shares (2)
VARIABLES nd, row, box, shelf, epoch
vars == <<nd, row, box, shelf, epoch>>
store == <<row, shelf, epoch>>

Nodes == 0..(N - 1)
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Less(a, b) == Max(0, a - b)
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

NoRow == [here |-> FALSE, seq |-> 0, gen |-> 0, share |-> 0, high |-> 0, infl |-> 0, rest |-> 0,
          fell |-> FALSE]
NoMail == [k |-> "none", seq |-> 0, gen |-> 0, ep |-> 0, share |-> 0, infl |-> 0,
           fell |-> FALSE]
\* still: it is quiet, until it is proven that a lease has passed.
Fresh == [ep |-> 0, quiet |-> 0, still |-> FALSE, limit |-> Limit]
Init == /\ nd = [n \in Nodes |-> [seq |-> 0, gen |-> 0, ep |-> 0, share |-> 0, uw |-> FALSE,
                                  fenced |-> TRUE, age |-> 0, rest |-> 0, infl |-> 0,
                                  dying |-> 0, ends |-> 0, fell |-> FALSE]]
        /\ row = [n \in Nodes |-> NoRow] /\ box = [n \in Nodes |-> NoMail]
        /\ shelf = Fresh /\ epoch = 0

\* ---- Renaming
Rank(S, x) == Cardinality({y \in S : 0 < y /\ y <= x})
Seqs(d, r, b) == {d.seq, r.seq, b.seq}
Gens(d, r, b) == {d.gen, r.gen, b.gen}
Named(x, d, r, b) == [x EXCEPT !.seq = Rank(Seqs(d, r, b), @), !.gen = Rank(Gens(d, r, b), @)]
\* An answer that would be dropped is as good as lost.
Kept(d, b) == IF b.k = "answer" /\ (~d.uw \/ b.seq # d.seq) THEN NoMail ELSE b
Becomes(nd1, row1, box1) ==
    LET b == [n \in Nodes |-> Kept(nd1[n], box1[n])] IN
    /\ nd' = [n \in Nodes |-> Named(nd1[n], nd1[n], row1[n], b[n])]
    /\ row' = [n \in Nodes |-> Named(row1[n], nd1[n], row1[n], b[n])]
    /\ box' = [n \in Nodes |-> Named(b[n], nd1[n], row1[n], b[n])]

\* ---- The store
Reserve(r) == Max(r.share, Max(r.high, r.infl))
\* What a report may prove: all that is over, nothing, or a number of another life.
Proofs(m) == {"all"} \cup IF ~Late THEN {}
                          ELSE {"none"} \cup IF m.gen > 0 /\ m.ep # epoch THEN {"other"} ELSE {}
Serve(n, proof) ==
    LET m == box[n]
        believed == proof = "other" /\ ~Own /\ shelf.ep = epoch
        IsOver(rest) == believed \/ (proof = "all" /\ rest = 0)
        still == Quiet /\ (shelf.ep # epoch \/ (shelf.still /\ ~IsOver(shelf.quiet)))
        quiet == IF ~still THEN 0 ELSE IF shelf.ep = epoch THEN shelf.quiet ELSE Lease
        kept == [o \in Nodes |-> IF o # n /\ IsOver(row[o].rest) THEN NoRow ELSE row[o]]
        others == {o \in Nodes \ {n} : kept[o].here}
        r == row[n]
        applied == r.here /\ m.ep = epoch /\ m.gen = r.gen
        held == IF Held THEN m.share ELSE 0
        high == Max(IF ~High \/ applied THEN 0 ELSE r.high, held)
        members == Cardinality(others) + 1
        rank == IF r.here THEN Cardinality({o \in others : o < n}) ELSE members - 1
        limit == shelf.limit
        target == limit \div members + (IF rank < limit % members THEN 1 ELSE 0)
        taken == IF Cap THEN Sum([o \in Nodes |-> Reserve(kept[o])], others) ELSE 0
        above == Sum([o \in Nodes |-> Reserve(kept[o]) - kept[o].share], others)
        keeps == CASE Keeps = 0 -> 0 [] Keeps = 1 -> Min(r.share, held)
                   [] Keeps = 2 -> Less(Min(target, Min(r.share, held)), above)
        free == Min(target, Max(Less(limit, taken), keeps))
        share == IF still THEN Min(free, held) ELSE free
        same == r.here /\ share = r.share
        gen == IF same THEN r.gen
               ELSE 1 + Max(nd[n].gen, Max(r.gen, m.gen))
    IN /\ m.k = "report" /\ UNCHANGED epoch
       /\ shelf' = [ep |-> epoch, quiet |-> quiet, still |-> still, limit |-> limit]
       /\ Becomes(nd,
                  [kept EXCEPT ![n] = [here |-> TRUE, seq |-> m.seq, gen |-> gen, share |-> share,
                                       high |-> Max(high, share),
                                       infl |-> m.infl, fell |-> FALSE,
                                       rest |-> IF Lease = 0 THEN 1 ELSE Lease - Early]],
                  [box EXCEPT ![n] = [k |-> "answer", seq |-> m.seq, gen |-> gen, ep |-> epoch,
                                      share |-> share, infl |-> 0, fell |-> FALSE]])
Forget == /\ epoch < Forgets /\ epoch' = epoch + 1 /\ shelf' = Fresh
          /\ Becomes(nd, [n \in Nodes |-> NoRow], box)
\* What was granted before counts as that: .fell.
Falls == /\ Low > 0 /\ shelf.limit = Limit /\ shelf' = [shelf EXCEPT !.limit = Low]
         /\ nd' = [n \in Nodes |-> [nd[n] EXCEPT !.fell = TRUE]]
         /\ row' = [n \in Nodes |-> [row[n] EXCEPT !.fell = row[n].here]]
         /\ box' = [n \in Nodes |-> [box[n] EXCEPT !.fell = box[n].k = "answer"]]
         /\ UNCHANGED epoch

\* ---- A node
Send(n) ==
    LET d == nd[n] IN
    /\ ~d.uw /\ box[n].k = "none" /\ UNCHANGED <<shelf, epoch>>
    /\ Becomes([nd EXCEPT ![n].seq = @ + 1, ![n].uw = TRUE, ![n].age = 0], row,
               [box EXCEPT ![n] = [k |-> "report", seq |-> d.seq + 1, gen |-> d.gen, ep |-> d.ep,
                                   share |-> IF d.fenced THEN 0 ELSE d.share,
                                   infl |-> IF Flight THEN d.infl + d.dying ELSE 0,
                                   fell |-> FALSE]])
Lasts == Lease - (IF Told THEN Abort ELSE 0)
Hear(n) ==
    LET m == box[n]
        rest == Lasts - (IF Sent THEN nd[n].age ELSE 0)
        heard == [nd EXCEPT ![n].uw = FALSE, ![n].age = 0]
    IN /\ m.k = "answer" /\ UNCHANGED <<shelf, epoch>>
       /\ Becomes(IF Lease > 0 /\ rest <= 0 THEN heard
                  ELSE [heard EXCEPT ![n].gen = m.gen, ![n].ep = m.ep, ![n].share = m.share,
                                     ![n].fenced = FALSE, ![n].fell = m.fell,
                                     ![n].rest = IF Lease = 0 THEN 0 ELSE rest],
                  row, [box EXCEPT ![n] = NoMail])
Lose(n) == /\ box[n].k # "none" /\ Becomes(nd, row, [box EXCEPT ![n] = NoMail])
           /\ UNCHANGED <<shelf, epoch>>
GiveUp(n) == /\ nd[n].uw /\ Becomes([nd EXCEPT ![n].uw = FALSE, ![n].age = 0], row, box)
             /\ UNCHANGED <<shelf, epoch>>
Calls(n, d) == nd' = [nd EXCEPT ![n] = d] /\ UNCHANGED box /\ UNCHANGED store
Acquire(n) == /\ ~nd[n].fenced /\ nd[n].infl + nd[n].dying < nd[n].share
              /\ Calls(n, [nd[n] EXCEPT !.infl = @ + 1])
Release(n) == nd[n].infl > 0 /\ Calls(n, [nd[n] EXCEPT !.infl = @ - 1])
Aborted(n) == nd[n].dying > 0 /\ Calls(n, [nd[n] EXCEPT !.dying = @ - 1])

\* ---- Time
Older(d) ==
    LET ends == Less(d.ends, 1) IN
    [d EXCEPT !.ends = ends, !.dying = IF ends = 0 THEN 0 ELSE @,
              !.age = IF d.uw THEN Min(@ + 1, Lasts) ELSE @, !.rest = Less(@, 1)]
Fenced(d) ==
    IF d.fenced \/ d.rest > 0 THEN d
    ELSE [d EXCEPT !.fenced = TRUE, !.share = 0, !.infl = 0, !.ends = Abort,
                   !.dying = IF Abort = 0 THEN 0 ELSE @ + d.infl,
                   !.uw = @ /\ ~Lost, !.age = IF Lost THEN 0 ELSE @]
Tick == /\ Lease > 0
        /\ shelf' = [shelf EXCEPT !.quiet = Less(@, 1), !.still = @ /\ (Late \/ shelf.quiet > 1)]
        /\ UNCHANGED epoch
        /\ Becomes([n \in Nodes |-> Fenced(Older(nd[n]))],
                   [n \in Nodes |-> [row[n] EXCEPT !.rest = Less(@, 1)]], box)

Next == \/ Forget \/ Tick \/ Falls
        \/ \E n \in Nodes : \/ Send(n) \/ (\E p \in Proofs(box[n]) : Serve(n, p)) \/ Hear(n) \/ Lose(n) \/ GiveUp(n)
                            \/ Acquire(n) \/ Release(n) \/ Aborted(n)
Spec == Init /\ [][Next]_vars

AtBackend(n) == nd[n].infl + nd[n].dying
InflightCap == Sum([n \in Nodes |-> AtBackend(n)], Nodes) <= Limit
Known == shelf.ep = epoch /\ shelf.quiet = 0
Covered == Known => \A n \in Nodes :
               Max(AtBackend(n), IF nd[n].fenced THEN 0 ELSE nd[n].share) <= Reserve(row[n])
\* What it has, or may have by what it knows or by an answer that comes.
Entitled(n) == Max(AtBackend(n), Max(IF nd[n].fenced THEN 0 ELSE nd[n].share,
                                     IF box[n].k = "answer" THEN box[n].share ELSE 0))
Others(n) == Sum([o \in Nodes |-> Entitled(o)], Nodes \ {n})
Within == \A n \in Nodes : nd[n].fenced \/ nd[n].fell \/ nd[n].share = 0
                           \/ nd[n].share + Others(n) <= shelf.limit
Reached == Sum([n \in Nodes |-> AtBackend(n)], Nodes) < Limit
===============================================================================
