--------------------------------- MODULE Beats ---------------------------------
(* Nodes that share a ceiling beat, and each beat is answered at once: the node   *)
(* reports, the store grants, the node applies.  Two rules: the predecessor's,    *)
(* which sees what all have in flight; and ours, which knows what was reported,   *)
(* reserves the larger of what the node has in force and what it is granted, and  *)
(* lets a node drain that leaves.                                                 *)
EXTENDS Integers, FiniteSets
CONSTANTS N, Limit,
          Ours,
          Shares,   \* guard: the others' shares are taken off
          Flight,   \* guard: what they have in flight is, too
          Drain     \* guard: a node that leaves reports its calls until they have ended
VARIABLES node, row
vars == <<node, row>>

Nodes == 0..(N - 1)
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

Away == [active |-> FALSE, leaves |-> FALSE, share |-> 0, infl |-> 0]
None == [here |-> FALSE, w |-> 0, share |-> 0, high |-> 0, infl |-> 0]
Active == {n \in Nodes : node[n].active}

Init == /\ row = [n \in Nodes |-> None]
        /\ IF Ours THEN node = [n \in Nodes |-> Away]
           ELSE \E S \in SUBSET Nodes \ {{}} :
                    node = [n \in Nodes |-> [Away EXCEPT !.active = n \in S]]

\* ---- The predecessor's rule
Held(n) == Max(IF Shares THEN node[n].share ELSE 0, IF Flight THEN node[n].infl ELSE 0)
Reallocate(n) ==
    LET target == (Limit + Cardinality(Active) - 1) \div Cardinality(Active)
        left == Limit - Sum([m \in Nodes |-> Held(m)], Active \ {n})
    IN /\ n \in Active /\ node' = [node EXCEPT ![n].share = Max(0, Min(target, left))]
       /\ UNCHANGED row
Join(n) == /\ n \notin Active /\ UNCHANGED row
           /\ node' = [node EXCEPT ![n].active = TRUE, ![n].share = 0]
Leave(n) == /\ n \in Active /\ Cardinality(Active) > 1 /\ UNCHANGED row
            /\ node' = [node EXCEPT ![n] = Away]
Theirs(n) == Reallocate(n) \/ Join(n) \/ Leave(n)

\* ---- Ours
Reserve(r) == Max(r.share, Max(r.high, r.infl))
Others(n) == {m \in Nodes \ {n} : row[m].here}
\* What does not divide goes to the first, in the order of the nodes; a new one is last.
Target(n) ==
    LET members == Cardinality(Others(n)) + 1
        weights == Sum([m \in Nodes |-> row[m].w], Others(n)) + 1
        rank == IF row[n].here THEN Cardinality({m \in Others(n) : m < n}) ELSE members - 1
    IN Limit \div weights + (IF rank * weights < (Limit % weights) * members THEN 1 ELSE 0)
Granted(n) ==
    LET taken == IF Shares THEN Sum([m \in Nodes |-> Reserve(row[m])], Others(n)) ELSE 0
    IN IF node[n].leaves THEN 0 ELSE Min(Target(n), Max(0, Limit - taken))
Told(n) == IF node[n].leaves THEN IF Drain THEN node[n].infl ELSE 0
           ELSE IF Flight THEN node[n].infl ELSE 0
Gone(n) == node[n].leaves /\ Told(n) = 0
Beat(n) ==
    IF Gone(n)
    THEN /\ row' = [row EXCEPT ![n] = None]
         /\ node' = [node EXCEPT ![n] = [Away EXCEPT !.infl = node[n].infl]]
    ELSE /\ row' = [row EXCEPT ![n] =
                     [here |-> TRUE, w |-> IF node[n].leaves THEN 0 ELSE 1,
                      share |-> Granted(n), infl |-> Told(n),
                      high |-> Max(Granted(n), node[n].share)]]
         /\ node' = [node EXCEPT ![n].active = TRUE, ![n].share = Granted(n)]
IsToLeave(n) == /\ n \in Active /\ ~node[n].leaves /\ UNCHANGED row
                /\ node' = [node EXCEPT ![n].leaves = TRUE, ![n].share = 0]

\* ---- Both
Acquire(n) == /\ n \in Active /\ node[n].infl < node[n].share /\ UNCHANGED row
              /\ node' = [node EXCEPT ![n].infl = @ + 1]
Release(n) == /\ node[n].infl > 0 /\ UNCHANGED row
              /\ node' = [node EXCEPT ![n].infl = @ - 1]
Next == \E n \in Nodes : \/ Acquire(n) \/ Release(n)
                         \/ Ours /\ (Beat(n) \/ IsToLeave(n))
                         \/ ~Ours /\ Theirs(n)
Spec == Init /\ [][Next]_vars

InflightCap == Sum([n \in Nodes |-> node[n].infl], Nodes) <= Limit
SharesCap == Sum([n \in Nodes |-> node[n].share], Active) <= Limit
\* What holds for any number of nodes: shares.md.
Covered == Ours => \A n \in Nodes : Reserve(row[n]) >= Max(node[n].share, node[n].infl)
ReservedCap == Sum([n \in Nodes |-> Reserve(row[n])], Nodes) <= Limit
Reached == Sum([n \in Nodes |-> node[n].infl], Nodes) < Limit
===============================================================================
