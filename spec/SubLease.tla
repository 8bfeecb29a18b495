------------------------------- MODULE SubLease --------------------------------
(* A store lends to nodes, and a node to its seats: its credit is a word, and so  *)
(* is the cell of each seat.  A seat takes from its cell, from the node's word,   *)
(* or cuts a slice of that.  The node gathers what lies in cells, and gives all   *)
(* back.                                                                          *)
(* Packed: each change of a word is one step, a compare-and-swap on (window,      *)
(* units).  Otherwise a seat loads its cell, and stores it later.                 *)
EXTENDS Integers, FiniteSets
CONSTANTS Nodes, Seats, Limit, Batch, Windows, Packed
VARIABLES win, left, adm, lost, word, cell, seen
vars == <<win, left, adm, lost, word, cell, seen>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})
Places == Nodes \X Seats
InCells(n) == Sum(cell, {n} \X Seats)
EmptyCells(n) == [p \in Places |-> IF p[1] = n THEN 0 ELSE cell[p]]

Init == /\ win = 1 /\ left = Limit /\ adm = 0 /\ lost = 0
        /\ word = [n \in Nodes |-> 0] /\ cell = [p \in Places |-> 0]
        /\ seen = [p \in Places |-> 0]

Lease(n) == /\ word[n] = 0 /\ left > 0
            /\ LET k == Min(Batch, left) IN left' = left - k /\ word' = [word EXCEPT ![n] = k]
            /\ UNCHANGED <<win, adm, lost, cell, seen>>

Slice(n) == Max(1, word[n] \div (2 * Cardinality(Seats)))
TakeFromCell(p) == /\ Packed /\ seen[p] = 0 /\ cell[p] > 0
                   /\ cell' = [cell EXCEPT ![p] = @ - 1] /\ adm' = adm + 1
                   /\ UNCHANGED <<win, left, lost, word, seen>>
TakeBySlice(p) == /\ seen[p] = 0 /\ cell[p] = 0 /\ word[p[1]] > 0
                  /\ word' = [word EXCEPT ![p[1]] = @ - Slice(p[1])]
                  /\ cell' = [cell EXCEPT ![p] = Slice(p[1]) - 1] /\ adm' = adm + 1
                  /\ UNCHANGED <<win, left, lost, seen>>
TakeFromWord(p) == /\ seen[p] = 0 /\ word[p[1]] > 0
                   /\ word' = [word EXCEPT ![p[1]] = @ - 1] /\ adm' = adm + 1
                   /\ UNCHANGED <<win, left, lost, cell, seen>>
Load(p) == /\ ~Packed /\ seen[p] = 0 /\ cell[p] > 0 /\ seen' = [seen EXCEPT ![p] = cell[p]]
           /\ UNCHANGED <<win, left, adm, lost, word, cell>>
Store(p) == /\ seen[p] > 0 /\ cell' = [cell EXCEPT ![p] = seen[p] - 1]
            /\ seen' = [seen EXCEPT ![p] = 0] /\ adm' = adm + 1
            /\ UNCHANGED <<win, left, lost, word>>

Gather(n) == /\ InCells(n) > 0 /\ word' = [word EXCEPT ![n] = @ + InCells(n)]
             /\ cell' = EmptyCells(n) /\ UNCHANGED <<win, left, adm, lost, seen>>
GiveBack(n) == /\ word[n] + InCells(n) > 0 /\ left' = left + word[n] + InCells(n)
               /\ left' <= Limit
               /\ word' = [word EXCEPT ![n] = 0] /\ cell' = EmptyCells(n)
               /\ UNCHANGED <<win, adm, lost, seen>>
Crash(n) == /\ word[n] + InCells(n) > 0 /\ lost' = lost + word[n] + InCells(n)
            /\ word' = [word EXCEPT ![n] = 0] /\ cell' = EmptyCells(n)
            /\ seen' = [p \in Places |-> IF p[1] = n THEN 0 ELSE seen[p]]
            /\ UNCHANGED <<win, left, adm>>
Turn == /\ win < Windows /\ win' = win + 1 /\ left' = Limit /\ adm' = 0 /\ lost' = 0
        /\ word' = [n \in Nodes |-> 0] /\ cell' = [p \in Places |-> 0] /\ UNCHANGED seen

Next == \/ Turn
        \/ \E n \in Nodes : Lease(n) \/ Gather(n) \/ GiveBack(n) \/ Crash(n)
        \/ \E p \in Places : TakeFromCell(p) \/ TakeFromWord(p) \/ TakeBySlice(p)
                          \/ Load(p) \/ Store(p)
Spec == Init /\ [][Next]_vars

InNodes == Sum([n \in Nodes |-> word[n] + InCells(n)], Nodes)
Conserved == left + InNodes + adm + lost = Limit
Cap == adm <= Limit
\* To the store a node with seats is like a node without: what it holds was left before.
Flat == left \in 0..Limit /\ InNodes \in 0..(Limit - left)
Reached == adm < Limit                 \* must be violated
================================================================================
